#include "lib/study/capacity_of_recording.hpp"

#include <algorithm>

namespace fragsim {

std::optional<RecordedCapacity> capacity_of_recording(const Trace& trace) {
    if (trace.ooms.empty()) return {};
    Bytes reserved = 0, peak = 0;
    for (const SegmentPicture& segment : trace.initial.segments) reserved += segment.size;
    peak = reserved;
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
        // PyTorch asks for whole segments, of 20 MiB for requests up to 10 MiB, else a multiple of 2 MiB.
        const Bytes segment = oom.requested < 10 * kMiB ? 20 * kMiB : round_up(oom.requested, 2 * kMiB);
        const bool full = oom.device_free < segment;
        return RecordedCapacity{full ? std::max(peak, reserved + oom.device_free) : peak, full};
    }
    return {};
}

}  // namespace fragsim
