#include "lib/trace/trace_builder.hpp"

#include <algorithm>
#include <numeric>

#include "lib/core/error.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kMaxStreams = 0xffff, kMaxPools = 0xffff;

}  // namespace

std::uint16_t TraceBuilder::stream(std::uint64_t handle) {
    const auto next = static_cast<std::uint16_t>(trace_.streams.size());
    const auto [at, is_new] = streams_.try_emplace(handle, next);
    if (is_new) {
        if (trace_.streams.size() == kMaxStreams) throw Error(ErrorCode::input, "more than 65535 streams");
        trace_.streams.push_back(handle);
    }
    return at->second;
}

std::uint16_t TraceBuilder::pool(std::pair<std::int64_t, std::int64_t> id) {
    const auto at = std::find(trace_.pools.begin(), trace_.pools.end(), id);
    if (at != trace_.pools.end()) return static_cast<std::uint16_t>(at - trace_.pools.begin());
    if (trace_.pools.size() == kMaxPools) throw Error(ErrorCode::input, "more than 65535 memory pools");
    trace_.pools.push_back(id);
    return static_cast<std::uint16_t>(trace_.pools.size() - 1);
}

void TraceBuilder::add_stream_use(BufferId buffer, std::uint16_t stream) {
    trace_.stream_uses.push_back({buffer, {stream}});
    add(EventKind::record_stream, static_cast<std::uint32_t>(trace_.stream_uses.size() - 1));
}

void TraceBuilder::add_marker(std::string_view text) {
    trace_.markers.emplace_back(text);
    add(EventKind::marker, static_cast<std::uint32_t>(trace_.markers.size() - 1));
}

void TraceBuilder::fail_too_long() {
    throw Error(ErrorCode::input, "the trace has more than 2^28 events or buffers", "record a shorter run");
}

Trace TraceBuilder::finish() {
    std::vector<std::uint16_t> order(trace_.streams.size());
    std::iota(order.begin(), order.end(), std::uint16_t{0});
    std::sort(order.begin(), order.end(),
        [&](std::uint16_t a, std::uint16_t b) { return trace_.streams[a] < trace_.streams[b]; });
    std::vector<std::uint16_t> rank(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<std::uint16_t>(i);

    if (!std::is_sorted(order.begin(), order.end())) {
        const auto renumber = [&](StreamId& id) { id = {rank[id.value]}; };
        for (Buffer& buffer : trace_.buffers) buffer.stream = rank[buffer.stream];
        for (StreamUse& use : trace_.stream_uses) renumber(use.stream);
        for (RecordedOom& oom : trace_.ooms) renumber(oom.stream);
        for (SegmentEvent& event : trace_.segment_events) renumber(event.stream);
        for (SegmentPicture& segment : trace_.initial.segments) renumber(segment.stream);
        if (trace_.final)
            for (SegmentPicture& segment : trace_.final->segments) renumber(segment.stream);
        for (Event& event : trace_.events)
            if (event.kind() == EventKind::synchronize && event.subject != Event::kAllStreams)
                event.subject = rank[event.subject] & Event::kMaxSubject;
        std::sort(trace_.streams.begin(), trace_.streams.end());
    }
    streams_.clear();
    return std::exchange(trace_, Trace{});
}

}  // namespace fragsim
