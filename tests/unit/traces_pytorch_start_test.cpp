#include "tests/support/catch.hpp"
#include "tests/unit/traces_support.hpp"
#include "traces/pytorch_empty_cache.hpp"
#include "traces/pytorch_rounding.hpp"

using namespace fragsim;
using namespace fragsim::test;
using nlohmann::ordered_json;

namespace {

constexpr std::int64_t kBase = 0x7f0000000000;
constexpr std::int64_t kMi = 1 << 20;

ordered_json entry(const char* action, std::int64_t offset, std::int64_t size) {
    return {{"action", action}, {"addr", kBase + offset}, {"size", size}, {"stream", 0}};
}
ordered_json block(std::int64_t size, const char* state = "inactive", std::int64_t requested = 0) {
    return {{"size", size}, {"requested_size", requested}, {"state", state}};
}
ordered_json segment(std::int64_t offset, std::int64_t size, ordered_json blocks, bool expandable = false) {
    return {{"device", 0}, {"address", kBase + offset}, {"total_size", size}, {"stream", 0},
        {"segment_type", size == 2 * kMi ? "small" : "large"}, {"is_expandable", expandable},
        {"blocks", std::move(blocks)}};
}
Recording read(ordered_json segments, ordered_json history) {
    return read_as(
        "pytorch-snapshot", pickle({{"segments", std::move(segments)}, {"device_traces", {std::move(history)}}}));
}
// "offset+size" of every block, an `*` behind those in use, a `~` behind pending ones.
std::string layout(const MemoryPicture& picture) {
    std::string out;
    for (const SegmentPicture& segment : picture.segments) {
        out += out.empty() ? "[" : " [";
        for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
            const BlockPicture& block = picture.blocks[i];
            if (i > segment.first_block) out += ' ';
            out += std::to_string(block.address - kBase) + '+' + std::to_string(block.size);
            if (block.state == BlockState::active_allocated) out += '*';
            if (block.state == BlockState::active_pending_free) out += '~';
        }
        out += ']';
    }
    return out;
}

}  // namespace

TEST_CASE("frees of what the history never allocated were in use when it began", "[unit][traces][start]") {
    const Recording recording = read(
        {segment(0, 2 * kMi, {block(2 * kMi)})}, {entry("free", 1024, 600), entry("alloc", 0, 8), entry("free", 0, 8)});
    const Trace& trace = recording.traces.at(0);
    CHECK(trace.completeness == Completeness::mid_run);
    CHECK(layout(trace.initial) == "[0+1024 1024+1024* 2048+2095104]");
    REQUIRE(trace.events.size() == 3);
    CHECK(trace.events[0].kind() == EventKind::free);
    CHECK(trace.initial.blocks[1].buffer == trace.events[0].buffer());
    CHECK(trace.buffers[0].recorded_address == kBase + 1024);
    CHECK(recording.diagnostics.empty());
}

TEST_CASE("blocks that outlive the history keep their exact size and get a buffer", "[unit][traces][start]") {
    const Recording recording =
        read({segment(0, 20 * kMi, {block(3 * kMi, "active_allocated", 3 * kMi - 600000), block(17 * kMi)})},
            {entry("alloc", 4 * kMi, 2 * kMi), entry("free", 4 * kMi, 2 * kMi)});
    const Trace& trace = recording.traces.at(0);
    CHECK(layout(trace.initial) == "[0+3145728* 3145728+17825792]");
    CHECK(trace.buffers.at(1).requested == 3 * kMi - 600000);
    CHECK(trace.final->blocks[0].buffer == BufferId{1});
}

TEST_CASE("a history that begins with a completed free comes from a ring that overflowed", "[unit][traces][start]") {
    const Recording recording = read({segment(0, 2 * kMi, {block(2 * kMi)})}, {entry("free_completed", 0, 512)});
    const Trace& trace = recording.traces.at(0);
    CHECK(trace.completeness == Completeness::ring_overflowed);
    CHECK(layout(trace.initial) == "[0+512~ 512+2096640]");
    CHECK(trace.events[0].kind() == EventKind::free_completed);
}

TEST_CASE("cached memory alone makes the start no longer complete", "[unit][traces][start]") {
    const Trace trace =
        read({segment(0, 2 * kMi, {block(2 * kMi)})}, {entry("alloc", 0, 8), entry("free", 0, 8)}).traces.at(0);
    CHECK(trace.completeness == Completeness::mid_run);
    CHECK(layout(trace.initial) == "[0+2097152]");
}

TEST_CASE("a large block takes a gap of up to 1 MiB behind it", "[unit][traces][start]") {
    SECTION("up to the segment's end") {
        CHECK(layout(read({segment(0, 20 * kMi, {block(20 * kMi)})}, {entry("free", 0, 19 * kMi + 512)})
                         .traces.at(0)
                         .initial) == "[0+20971520*]");
    }
    SECTION("up to the next block in use") {
        CHECK(layout(read({segment(0, 20 * kMi, {block(20 * kMi)})},
                  {entry("free", 0, 9 * kMi), entry("free", 10 * kMi, 10 * kMi)})
                         .traces.at(0)
                         .initial) == "[0+10485760* 10485760+10485760*]");
    }
    SECTION("but not in a segment that expands") {
        CHECK(layout(read({segment(0, 20 * kMi, {block(20 * kMi)}, true)}, {entry("free", 0, 19 * kMi + 512)})
                         .traces.at(0)
                         .initial) == "[0+19923456* 19923456+1048064]");
    }
}

TEST_CASE("a larger gap is decided by the first allocation in it while the block is in use", "[unit][traces][start]") {
    const ordered_json whole = {segment(0, 20 * kMi, {block(20 * kMi)})};
    const auto at = [](std::int64_t offset) { return entry("alloc", offset, 2 * kMi); };
    SECTION("none: the block ends at its rounded size") {
        CHECK(layout(read(whole, {entry("free", 0, 5 * kMi)}).traces.at(0).initial) == "[0+5242880* 5242880+15728640]");
    }
    SECTION("one within 1 MiB: the block reaches to it") {
        CHECK(layout(read(whole,
                  {at(5 * kMi + 512 * 1024), entry("free", 0, 5 * kMi), entry("free", 5 * kMi + 512 * 1024, 2 * kMi)})
                         .traces.at(0)
                         .initial) == "[0+5767168* 5767168+15204352]");
    }
    SECTION("one further away says nothing") {
        CHECK(layout(read(whole, {at(7 * kMi), entry("free", 0, 5 * kMi), entry("free", 7 * kMi, 2 * kMi)})
                         .traces.at(0)
                         .initial) == "[0+5242880* 5242880+15728640]");
    }
    SECTION("one after the free says nothing") {
        CHECK(layout(read(whole,
                  {entry("free", 0, 5 * kMi), at(5 * kMi + 512 * 1024), entry("free", 5 * kMi + 512 * 1024, 2 * kMi)})
                         .traces.at(0)
                         .initial) == "[0+5242880* 5242880+15728640]");
    }
}

TEST_CASE("segments are followed back through what was obtained and released", "[unit][traces][start]") {
    SECTION("whole segments") {
        const Trace trace = read({segment(0, 2 * kMi, {block(2 * kMi)})},
            {entry("segment_free", 64 * kMi, 20 * kMi), entry("segment_alloc", 0, 2 * kMi), entry("alloc", 0, 8),
                entry("free", 0, 8)})
                                .traces.at(0);
        CHECK(layout(trace.initial) == "[67108864+20971520]");
        CHECK_FALSE(trace.initial.segments.at(0).small);
    }
    SECTION("mapped ranges split and join") {
        const Trace trace = read({segment(0, 40 * kMi, {block(40 * kMi)}, true)},
            {entry("segment_unmap", 40 * kMi, 20 * kMi), entry("segment_map", 20 * kMi, 20 * kMi),
                entry("alloc", 20 * kMi, 20 * kMi), entry("free", 20 * kMi, 20 * kMi)})
                                .traces.at(0);
        CHECK(layout(trace.initial) == "[0+20971520] [41943040+20971520]");
        CHECK(trace.initial.segments.at(1).expandable);
    }
}

TEST_CASE("a start that cannot be is counted or refused", "[unit][traces][start]") {
    const Recording lost = read(ordered_json::array(), {entry("free", 0, 1000)});
    CHECK(lost.diagnostics.entries().at(0).kind == "block in use at the start that lies in no segment");
    CHECK(layout(lost.traces.at(0).initial) == "[0+1024*]");
    const Recording odd = read({segment(0, 2 * kMi, {block(2 * kMi)})}, {entry("segment_alloc", 8 * kMi, 2 * kMi)});
    CHECK(odd.diagnostics.entries().at(0).kind == "segment entry that contradicts the segments at the end");
    CHECK(contains(error_of([] {
        read({segment(0, 2 * kMi, {block(2 * kMi)})}, {entry("free", 0, 2000), entry("free", 512, 512)});
    }),
        "run: device 0: the blocks in use at the start overlap"));
}

TEST_CASE(
    "released segments are an empty_cache unless the same malloc then grows or fails", "[unit][traces][empty-cache]") {
    // Each step of the history: F/A segment of 20 MiB released/obtained, a alloc, c completed free, o out of memory.
    const auto runs = [](std::string_view steps, Bytes request = 30 * kMi, Bytes released = 20 * kMi,
                          Bytes max_split = -1) {
        std::vector<EntryRecord> entries;
        const auto add = [&](Action action, Bytes size) {
            EntryRecord record;
            record.action = static_cast<std::uint32_t>(action) & 15;
            record.size = size;
            record.address = static_cast<Address>(kBase);
            entries.push_back(record);
        };
        for (const char step : steps) switch (step) {
                case 'F': add(Action::segment_free, released); break;
                case 'U': add(Action::segment_unmap, released); break;
                case 'A': add(Action::segment_alloc, 20 * kMi); break;
                case 'a': add(Action::alloc, request); break;
                case 'r': add(Action::free_requested, 8); break;
                case 'c': add(Action::free_completed, 8); break;
                case 'o': add(Action::oom, request); break;
            }
        std::string out;
        AllocatorRules rules;
        rules.max_split_size = max_split;
        for (const ReleaseRun& run : find_release_runs(entries, rules))
            out += (run.empty_cache ? 'E' : 'R') + std::to_string(run.begin) + '-' + std::to_string(run.end);
        return out;
    };
    CHECK(runs("aFFAa") == "R1-3");
    CHECK(runs("acFFAAa") == "R2-4");
    CHECK(runs("FcFAa") == "R0-3");
    CHECK(runs("FFo") == "R0-2");
    CHECK(runs("UUo") == "R0-2");
    CHECK(runs("FF") == "E0-2");
    CHECK(runs("FFa") == "E0-2");
    CHECK(runs("FFcca") == "E0-2");
    CHECK(runs("FFrc") == "E0-2");
    CHECK(runs("FaFAa") == "E0-1R2-3");

    SECTION("a request that would have fitted was not what released them") {
        CHECK(runs("FAa", 20 * kMi) == "E0-1");
        CHECK(runs("FAa", 20 * kMi + 1) == "R0-1");
        CHECK(runs("FAa", 1000) == "R0-1");  // small blocks live elsewhere
        CHECK(runs("FAa", 1000, 2 * kMi) == "E0-1");
    }
    SECTION("unless the memory became free within the same call") {
        CHECK(runs("cFAa", 20 * kMi) == "R1-2");
        CHECK(runs("rcFAa", 20 * kMi) == "E2-3");
    }
    SECTION("or the limit on splitting kept it away") {
        CHECK(runs("FAa", 15 * kMi, 64 * kMi, 32 * kMi) == "R0-1");
        CHECK(runs("FAa", 40 * kMi, 64 * kMi, 32 * kMi) == "R0-1");
        CHECK(runs("FAa", 45 * kMi, 64 * kMi, 32 * kMi) == "E0-1");
    }
}

TEST_CASE("an empty_cache is an event before which its segments went", "[unit][traces][empty-cache]") {
    const Trace trace = read(ordered_json::array(), {entry("segment_alloc", 0, 2 * kMi), entry("alloc", 0, 8),
                                                        entry("free", 0, 8), entry("segment_free", 0, 2 * kMi)})
                            .traces.at(0);
    REQUIRE(trace.events.size() == 3);
    CHECK(trace.events[2].kind() == EventKind::empty_cache);
    CHECK(trace.inferred_empty_caches == 1);
    CHECK(trace.segment_events.at(0).before_event == 0);
    CHECK(trace.segment_events.at(1).before_event == 2);
    CHECK(trace.ops == 2);
}

TEST_CASE("requests round as the allocator rounds them", "[unit][traces][rounding]") {
    RoundupDivisions none{}, four{};
    four.fill(4);
    CHECK(round_request(1, none) == 512);
    CHECK(round_request(512, none) == 512);
    CHECK(round_request(513, none) == 1024);
    CHECK(round_request(1200, four) == 1536);
    CHECK(round_request(2048, four) == 2048);
    CHECK(round_request(2049, four) == 2560);
    CHECK(round_request(921600, four) == 1048576);
    CHECK(round_request(1200000, four) == 1310720);
    CHECK(round_request(21000000, four) == 25165824);
}
