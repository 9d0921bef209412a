#include "lib/study/memory_map.hpp"

#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// A replay of `calls` and its map of ops [first, end).
struct Mapped {
    Mapped(std::string_view calls, std::uint32_t first, std::uint32_t end, std::string_view policy = "caching")
        : trace(script(calls)) {
        RunOptions options;
        options.record_history = true;
        options.record_series = true;
        result = run_policy(trace, parse_policy_spec(policy, policies()), options);
        map = memory_map(trace, result, first, end);
    }

    const MemoryMap::Block* block(std::uint32_t buffer) const {
        for (const MemoryMap::Block& block : map.blocks)
            if (block.buffer == BufferId{buffer}) return &block;
        return nullptr;
    }

    Trace trace;
    Result result;
    MemoryMap map;
};

constexpr std::uint32_t kNever = MemoryMap::kNever;

}  // namespace

TEST_CASE("a block is there from its allocation to its free", "[unit][map]") {
    const Mapped mapped("a 0 30M; a 1 5M; f 0; a 2 1M-1", 0, 4);
    REQUIRE(mapped.map.blocks.size() == 3);
    const MemoryMap::Block& freed = *mapped.block(0);
    CHECK(freed.bytes == 30 * kMiB);
    CHECK((freed.begin == 0 && freed.let_go == 2 && freed.end == 2));
    const MemoryMap::Block& kept = *mapped.block(2);
    CHECK(kept.bytes == kMiB);
    CHECK((kept.begin == 3 && kept.let_go == kNever && kept.end == kNever));
}

TEST_CASE("only what was there in the window is in a map", "[unit][map]") {
    const char* calls = "a 0 1M; f 0; a 1 1M; a 2 1M; f 1; a 3 1M";
    const Mapped mapped(calls, 1, 5);
    CHECK_FALSE(mapped.block(0));  // freed at op 1
    CHECK(mapped.block(1));
    CHECK(mapped.block(2));
    CHECK_FALSE(mapped.block(3));  // allocated at op 5
}

TEST_CASE("a block that waits for another stream is let go before its end", "[unit][map]") {
    const Mapped mapped("a 0 1M; r 0 7; f 0; a 1 2M; c 0", 0, 3);
    const MemoryMap::Block& block = *mapped.block(0);
    CHECK(block.let_go == 1);
    CHECK(block.end == 2);
}

TEST_CASE("a block of a recording that begins in mid-run is there from the start", "[unit][map]") {
    Mapped mapped("a 0 1M; f 0", 0, 2);
    mapped.result.start = {
        {{1000, 100, {0}, 0, false, false, 0, 1}}, {{1000, 100, 90, {0}, BlockState::active_allocated}}};
    mapped.result.history = {{HistoryAction::free_completed, {0}, {0}, 1, 1000, 90}};
    const MemoryMap map = memory_map(mapped.trace, mapped.result, 0, 2);
    REQUIRE(map.blocks.size() == 1);
    CHECK((map.blocks[0].from_start && map.blocks[0].begin == 0 && map.blocks[0].end == 1));
    CHECK_FALSE(mapped.block(0)->from_start);
}

TEST_CASE("segments end where they are given back, and ranges that touch are one", "[unit][map]") {
    const Mapped mapped("a 0 30M; f 0; e; a 1 40M", 0, 3);
    REQUIRE(mapped.map.segments.size() == 2);
    CHECK((mapped.map.segments[0].begin == 0 && mapped.map.segments[0].end == 2));
    CHECK((mapped.map.segments[1].begin == 2 && mapped.map.segments[1].end == kNever));
    Bytes covered = 0;
    for (const MemoryMap::Range& range : mapped.map.ranges) covered += range.bytes;
    CHECK(covered >= 40 * kMiB);
    CHECK(covered <= 70 * kMiB);
}

TEST_CASE("what is unmapped in the middle of a segment cuts it", "[unit][map]") {
    Mapped mapped("a 0 1M", 0, 1);
    mapped.result.start = {{{1000, 100, {0}, 0, false, true, 0, 0}}, {}};
    mapped.result.history = {{HistoryAction::segment_unmap, {0}, {}, 0, 1040, 20}};
    const MemoryMap map = memory_map(mapped.trace, mapped.result, 0, 1);
    REQUIRE(map.segments.size() == 2);  // the part given back at op 0 was there at no op
    CHECK((map.segments[0].address == 1000 && map.segments[0].bytes == 40 && map.segments[0].end == kNever));
    CHECK((map.segments[1].address == 1060 && map.segments[1].bytes == 40 && map.segments[1].end == kNever));
    CHECK(map.ranges.size() == 2);
}

TEST_CASE("at every op the blocks of a map lie in its ranges and not upon each other", "[unit][map]") {
    const char* calls = "a 0 30M; a 1 5M; a 2 1M; f 1; a 3 2M; a 4 3M; f 0; e; a 5 25M; f 2; f 3; a 6 100";
    for (const PolicyInfo& policy : policies()) {
        if (!policy.required.empty()) continue;
        INFO(policy.name);
        const Mapped mapped(calls, 0, 11, policy.name);
        CHECK(mapped.map.blocks.size() == 7);
        for (const MemoryMap::Block& a : mapped.map.blocks) {
            const Address a_end = a.address + static_cast<Address>(a.bytes);
            CHECK(std::any_of(mapped.map.ranges.begin(), mapped.map.ranges.end(), [&](const MemoryMap::Range& range) {
                return range.address <= a.address && a_end <= range.address + static_cast<Address>(range.bytes);
            }));
            for (const MemoryMap::Block& b : mapped.map.blocks)
                if (a.buffer < b.buffer && a.begin < b.end && b.begin < a.end)
                    CHECK((a_end <= b.address || b.address + static_cast<Address>(b.bytes) <= a.address));
        }
    }
}

TEST_CASE("the peak is the first op at which most was reserved", "[unit][map]") {
    CHECK(peak_op(Mapped("a 0 30M; a 1 40M; f 1; a 2 40M", 0, 1).result.series) == 1);
}
