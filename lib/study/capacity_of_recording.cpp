#include "lib/study/capacity_of_recording.hpp"

#include <algorithm>

#include "lib/policy/torch_segments.hpp"

namespace fragsim {
namespace {

// What a device says is free is this much more than can be had. Source: spec/full-card.md (driver 580.159.04, all of
// PyTorch's back ends).
constexpr Bytes kNeverGiven = 3'276'800;
constexpr Bytes kPage = 2 * kMiB;  // physical memory comes in these

}  // namespace

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
        const Bytes left = std::max<Bytes>(0, oom.device_free - kNeverGiven) / kPage * kPage;
        if (left < pytorch::torch_segment_size(oom.requested))
            full_at = std::min(full_at.value_or(reserved + left), reserved + left);
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
