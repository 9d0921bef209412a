#include "lib/trace/trace_limits.hpp"

#include <limits>

#include "lib/trace/trace_builder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/truth.hpp"
#include "traces/registry.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// Allocations of these sizes, the first at `first_us`, the others at 0.
Trace trace_of(const std::vector<Bytes>& sizes, std::int64_t first_us = 0) {
    TraceBuilder builder(3);
    const std::uint16_t stream = builder.stream(0);
    for (const Bytes size : sizes) {
        const BufferId buffer = builder.add_buffer(size, 0, stream);
        builder.add(EventKind::alloc, buffer.value, buffer.value == 0 ? first_us : 0);
    }
    return builder.finish();
}

bool refused(const Trace& trace, const std::string& place) {
    return refusal([&] { check_limits(trace, "run"); }).says("run: device 3, " + place);
}

}  // namespace

TEST_CASE("an EiB may be asked for in all, a byte more is refused with its place", "[unit][trace]") {
    CHECK_NOTHROW(check_limits(trace_of({}), "run"));
    CHECK_NOTHROW(check_limits(trace_of({kMaxTotalBytes}), "run"));
    CHECK_NOTHROW(check_limits(trace_of({kMaxTotalBytes - 5, 5}), "run"));
    CHECK(refused(trace_of({kMaxTotalBytes - 5, 5, 1}), "allocation 2: 1 bytes make more than an EiB"));
    const Bytes largest = (Bytes{1} << 62) - 1;
    CHECK(refused(trace_of({largest, largest, largest}), "allocation 0"));
}

TEST_CASE("times end where doubles stop being exact", "[unit][trace]") {
    CHECK_NOTHROW(check_limits(trace_of({1, 1}, kMaxTimeUs - 1), "run"));
    CHECK_NOTHROW(check_limits(trace_of({1, 1}, 1 - kMaxTimeUs), "run"));
    CHECK(refused(trace_of({1, 1}, kMaxTimeUs), "event 0: 9007199254740992 is no time"));
    CHECK(refused(trace_of({1, 1}, std::numeric_limits<std::int64_t>::min()), "event 0"));
}

TEST_CASE("segments count in pictures and in entries", "[unit][trace]") {
    const Bytes half = kMaxTotalBytes / 2;
    Trace trace = trace_of({1});
    trace.segment_events = {{0, SegmentEventKind::alloc, {}, 0, half}, {0, SegmentEventKind::free, {}, 0, half}};
    CHECK_NOTHROW(check_limits(trace, "run"));
    trace.segment_events.push_back({0, SegmentEventKind::map, {}, 0, 1});
    CHECK(refused(trace, "segment entry 2"));

    trace = trace_of({1});
    trace.initial.segments.resize(3);
    for (SegmentPicture& segment : trace.initial.segments) segment.size = half;
    CHECK(refused(trace, "segment 2"));
    trace = trace_of({1});
    trace.final.emplace().blocks.resize(3);
    for (BlockPicture& block : trace.final->blocks) block.size = half;
    CHECK(refused(trace, "block 2"));
}

TEST_CASE("files that would make sums overflow are no traces", "[unit][readers]") {
    for (const auto& [name, place] :
        std::vector<std::pair<std::string, std::string>>{{"total_bytes.txt", "allocation 2"}, {"time.csv", "event 0"},
            {"segments.json", "segment 2"}, {"segment_entries.json", "segment entry 2"}}) {
        INFO(name);
        const std::string path = source_dir() + "/tests/data/bad/" + name;
        CHECK(refusal([&] { read_recording(path); }).says(path + ": device 0, " + place));
    }
}
