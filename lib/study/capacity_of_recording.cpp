#include "lib/study/capacity_of_recording.hpp"

#include <algorithm>

#include "lib/policy/torch_segments.hpp"

namespace fragsim {

std::optional<RecordedCapacity> capacity_of_recording(const Trace& trace) {
    if (trace.ooms.empty()) return {};
    Bytes reserved = 0;
    for (const SegmentPicture& segment : trace.initial.segments) reserved += segment.size;
    Bytes peak = reserved;
    std::optional<Bytes> full_at;
    bool refused = false;
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
        if (trace.events[i].kind() != EventKind::oom) continue;
        for (; next < trace.segment_events.size() && trace.segment_events[next].before_event <= i; ++next) {
            const SegmentEvent& event = trace.segment_events[next];
            const bool grows = event.kind == SegmentEventKind::alloc || event.kind == SegmentEventKind::map;
            peak = std::max(peak, reserved += grows ? event.bytes : -event.bytes);
        }
        const RecordedOom& oom = trace.ooms[trace.events[i].subject];
        if (oom.device_free < 0) continue;
        refused = true;
        if (oom.device_free < pytorch::torch_segment_size(oom.requested))
            full_at = std::min(full_at.value_or(reserved + oom.device_free), reserved + oom.device_free);
    }
    if (!refused || peak == 0) return {};
    return RecordedCapacity{std::max(peak, full_at.value_or(0)), full_at.has_value()};
}

Limits limits_for(const Trace& trace, const Limits& given) {
    if (given.bound()) return given;
    const std::optional<RecordedCapacity> recorded = capacity_of_recording(trace);
    return recorded ? recorded->limits() : Limits{};
}

}  // namespace fragsim
