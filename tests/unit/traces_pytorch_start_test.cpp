#include <algorithm>

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

namespace {

// A program of one cached segment of 20 MiB, and what came then.
Trace after_cached(std::vector<ordered_json> then, const ordered_json& settings = {}) {
    ordered_json history = {
        entry("segment_alloc", 0, 20 * kMi), entry("alloc", 0, 20 * kMi), entry("free", 0, 20 * kMi)};
    for (ordered_json& next : then) history.push_back(std::move(next));
    ordered_json document = {{"segments", ordered_json::array()}, {"device_traces", {std::move(history)}}};
    if (!settings.is_null()) document["allocator_settings"] = settings;
    return read_as("pytorch-snapshot", pickle(document)).traces.at(0);
}
int empty_caches(const Trace& trace) {
    return static_cast<int>(std::count_if(
        trace.events.begin(), trace.events.end(), [](Event event) { return event.kind() == EventKind::empty_cache; }));
}
ordered_json with_stack(ordered_json entry, std::vector<std::pair<const char*, const char*>> frames) {
    entry["frames"] = ordered_json::array();
    for (const auto& [name, file] : frames)
        entry["frames"].push_back({{"name", name}, {"filename", file}, {"line", 7}});
    return entry;
}
const ordered_json kRelease = entry("segment_free", 0, 20 * kMi);
const ordered_json kGrow = entry("segment_alloc", 64 * kMi, 30 * kMi), kGot = entry("alloc", 64 * kMi, 30 * kMi);

}  // namespace

TEST_CASE(
    "released segments are an empty_cache unless the same malloc then grows or fails", "[unit][traces][empty-cache]") {
    const ordered_json failed = {{"action", "oom"}, {"device_free", 0}, {"size", 30 * kMi}, {"stream", 0}};
    CHECK(empty_caches(after_cached({kRelease})) == 1);
    CHECK(empty_caches(after_cached({kRelease, entry("free", 512 * kMi, 8)})) == 1);
    CHECK(empty_caches(after_cached({kRelease, kGrow, kGot})) == 0);
    CHECK(empty_caches(after_cached({kRelease, failed})) == 0);

    SECTION("one release alone that may have been an empty_cache proves no refusal, two or one with a failure do") {
        CHECK(after_cached({kRelease, kGrow, kGot}).doubtful_refusal);
        CHECK_FALSE(after_cached({kRelease, kGrow, kGot, failed}).doubtful_refusal);
        CHECK_FALSE(after_cached({kRelease, kGrow, kGot, entry("free", 64 * kMi, 30 * kMi),
                                     entry("segment_free", 64 * kMi, 30 * kMi),
                                     entry("segment_alloc", 512 * kMi, 32 * kMi),
                                     entry("alloc", 512 * kMi, 32 * kMi)})
                        .doubtful_refusal);
    }
    SECTION("a request that the cache could have served did not release it") {
        CHECK(empty_caches(after_cached(
                  {kRelease, entry("segment_alloc", 64 * kMi, 20 * kMi), entry("alloc", 64 * kMi, 19 * kMi)})) == 1);
        CHECK(empty_caches(after_cached({kRelease, entry("segment_alloc", 64 * kMi, 2 * kMi),
                  entry("alloc", 64 * kMi, 1000)})) == 0);  // small blocks live elsewhere
    }
    SECTION("nor was a request refused where more was reserved later") {
        CHECK(empty_caches(after_cached({kRelease, kGrow, kGot, entry("segment_alloc", 512 * kMi, 500 * kMi)})) == 1);
        CHECK(empty_caches(after_cached({kRelease, kGrow, kGot, entry("segment_alloc", 512 * kMi, 30 * kMi)})) == 0);
    }
    SECTION("a collection of garbage needs no refusal") {
        CHECK(empty_caches(after_cached({kRelease, kGrow, kGot, entry("segment_alloc", 512 * kMi, 500 * kMi)},
                  {{"garbage_collection_threshold", 0.8}})) == 0);
    }
    SECTION("oversize blocks go first, the largest of them first") {
        const ordered_json settings = {{"max_split_size", 32 * kMi}};
        const auto two_cached = [&](std::int64_t first, std::int64_t second) {
            return after_cached(
                {entry("segment_alloc", 64 * kMi, 40 * kMi), entry("alloc", 64 * kMi, 40 * kMi),
                    entry("free", 64 * kMi, 40 * kMi), entry("segment_free", first, first ? 40 * kMi : 20 * kMi),
                    entry("segment_free", second, second ? 40 * kMi : 20 * kMi),
                    entry("segment_alloc", 512 * kMi, 70 * kMi), entry("alloc", 512 * kMi, 70 * kMi)},
                settings);
        };
        CHECK(empty_caches(two_cached(0, 64 * kMi)) == 1);  // the smallest first: everything that is cached
        CHECK(empty_caches(two_cached(64 * kMi, 0)) == 0);
    }
}

TEST_CASE("the call stack of a released segment says who released it", "[unit][traces][empty-cache]") {
    const std::pair<const char*, const char*> empty_cache{"empty_cache", "/x/torch/cuda/memory.py"},
        step{"step", "train.py"},
        cpp_empty{"c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::emptyCache()", "??"},
        cpp_malloc{"c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long)", "??"};
    const auto recorded = [](const Trace& trace) {
        return empty_caches(trace) - static_cast<int>(trace.inferred_empty_caches);
    };
    const auto released = [&](auto... frames) { return with_stack(kRelease, {frames...}); };
    CHECK(recorded(after_cached({released(empty_cache, step), kGrow, kGot})) == 1);
    CHECK(recorded(after_cached({released(cpp_empty), kGrow, kGot})) == 1);
    CHECK(recorded(after_cached({released(cpp_empty, empty_cache, step)})) == 1);
    CHECK(recorded(after_cached({kRelease})) == 0);

    const ordered_json much = entry("segment_alloc", 512 * kMi, 500 * kMi);
    SECTION("a malloc, whatever was reserved later") {
        CHECK(empty_caches(after_cached({released(cpp_malloc, step), kGrow, kGot, much})) == 0);
        CHECK(empty_caches(after_cached({released(step), with_stack(kGrow, {step}), with_stack(kGot, {step}), much})) ==
              0);
    }
    SECTION("a function of the program's own says nothing by its name") {
        const std::pair<const char*, const char*> own{"empty_cache", "train.py"}, inner{"forward", "model.py"};
        CHECK(recorded(after_cached({released(own), kGrow, kGot})) == 0);
        CHECK(recorded(after_cached({released(inner, empty_cache), kGrow, kGot})) == 0);
    }
    SECTION("the stack of the call that got the segment says nothing of its release") {
        const auto with_own = [&](std::vector<ordered_json> then) {
            ordered_json history = {with_stack(entry("segment_alloc", 0, 20 * kMi), {cpp_malloc}),
                entry("alloc", 0, 20 * kMi), entry("free", 0, 20 * kMi), released(cpp_malloc)};
            for (ordered_json& next : then) history.push_back(std::move(next));
            return read(ordered_json::array(), std::move(history)).traces.at(0);
        };
        CHECK(empty_caches(with_own({kGrow, kGot, much})) == 1);
        CHECK(empty_caches(with_own({kGrow, kGot})) == 0);
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
