#include "lib/study/capacity_of_recording.hpp"

#include <algorithm>

namespace fragsim {

namespace {

// PyTorch asks for whole segments, of 20 MiB for requests up to 10 MiB, else a multiple of 2 MiB.
Bytes segment_for(Bytes requested) { return requested < 10 * kMiB ? 20 * kMiB : round_up(requested, 2 * kMiB); }

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
        if (oom.device_free < segment_for(oom.requested))
            full_at = std::min(full_at.value_or(reserved + oom.device_free), reserved + oom.device_free);
    }
    if (!refused || peak == 0) return {};
    return RecordedCapacity{std::max(peak, full_at.value_or(0)), full_at.has_value()};
}

}  // namespace fragsim
