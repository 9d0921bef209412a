// What a recording's driver calls say about the memory its process had.
#include "lib/study/capacity_of_recording.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

using Kind = SegmentEventKind;

Trace with_calls(const char* text, std::vector<SegmentEvent> calls) {
    Trace trace = script(text);
    trace.segment_events = std::move(calls);
    return trace;
}

constexpr Address kA = 0x7f0000000000, kB = 0x7f0040000000, kC = 0x7f0080000000;

}  // namespace

TEST_CASE("cached memory that goes back in an allocation shows a refusal", "[unit][capacity]") {
    const Trace trace = with_calls(
        "a 0 600M; f 0; a 1 700M", {{0, Kind::alloc, {0}, kA, 600 * kMiB}, {2, Kind::free, {0}, kA, 600 * kMiB},
                                       {2, Kind::alloc, {0}, kB, 700 * kMiB}});
    const auto refusals = recorded_refusals(trace);
    REQUIRE(refusals.size() == 1);
    CHECK(refusals.front().op == 2);
    CHECK(refusals.front().reserved == 600 * kMiB);
    CHECK(refusals.front().wanted == 700 * kMiB);
    CHECK(refusals.front().served);
    const auto capacity = capacity_of_recording(trace);
    REQUIRE(capacity);
    CHECK(capacity->bytes == 700 * kMiB);
    REQUIRE(capacity->retry);
    CHECK(capacity->retry->below() == 1300 * kMiB);
    CHECK_FALSE(capacity_of_recording(trace, true));  // a garbage collection gives memory back without a refusal
}

TEST_CASE("an empty_cache between two allocations is no refusal", "[unit][capacity]") {
    const Trace trace = with_calls(
        "a 0 600M; f 0; e; a 1 700M", {{0, Kind::alloc, {0}, kA, 600 * kMiB}, {2, Kind::free, {0}, kA, 600 * kMiB},
                                          {3, Kind::alloc, {0}, kB, 700 * kMiB}});
    CHECK(recorded_refusals(trace).empty());
    CHECK_FALSE(capacity_of_recording(trace));
}

TEST_CASE("more was held later than a refusal would allow: no bound for the whole run", "[unit][capacity]") {
    const Trace trace = with_calls("a 0 20M; f 0; a 1 26M; a 2 500M",
        {{0, Kind::alloc, {0}, kA, 20 * kMiB}, {2, Kind::free, {0}, kA, 20 * kMiB},
            {2, Kind::alloc, {0}, kB, 26 * kMiB}, {3, Kind::alloc, {0}, kC, 500 * kMiB}});
    CHECK(recorded_refusals(trace).size() == 1);
    CHECK_FALSE(capacity_of_recording(trace));
}

TEST_CASE("an out of memory is listed with what was reserved before the cache was emptied", "[unit][capacity]") {
    Trace trace = script("a 0 60M; f 0");
    trace.ooms.push_back({5 * kMiB, 8 * kMiB, {0}});
    trace.events.push_back({static_cast<std::uint32_t>(EventKind::oom), 0});
    trace.segment_events = {{0, Kind::alloc, {0}, kA, 60 * kMiB}, {2, Kind::free, {0}, kA, 60 * kMiB}};
    const auto refusals = recorded_refusals(trace);
    REQUIRE(refusals.size() == 1);
    CHECK_FALSE(refusals.front().served);
    CHECK(refusals.front().reserved == 60 * kMiB);
    CHECK(refusals.front().wanted == 20 * kMiB);  // the segment for 5 MiB
}
