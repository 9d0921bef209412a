#include "lib/study/capacity_of_recording.hpp"

#include <algorithm>

#include "lib/policy/torch_segments.hpp"

namespace fragsim {
namespace {

// What a device says is free is this much more than can be had. Source: spec/full-card.md (driver 580.159.04, all of
// PyTorch's back ends).
constexpr Bytes kNeverGiven = 3'276'800;
constexpr Bytes kPage = 2 * kMiB;  // physical memory comes in these

bool grows(const SegmentEvent& event) {
    return event.kind == SegmentEventKind::alloc || event.kind == SegmentEventKind::map;
}

Bytes reserved_at_start(const Trace& trace) {
    Bytes reserved = 0;
    for (const SegmentPicture& segment : trace.initial.segments) reserved += segment.size;
    return reserved;
}

// Memory was held all along that is more than what a refusal lets the process have: no bound holds for the whole run.
std::optional<RecordedCapacity> capacity_by_retries(const Trace& trace) {
    Bytes reserved = reserved_at_start(trace);
    Bytes peak = reserved;
    for (const SegmentEvent& event : trace.segment_events)
        peak = std::max(peak, reserved += grows(event) ? event.bytes : -event.bytes);
    std::optional<RecordedRefusal> tightest;
    for (const RecordedRefusal& refusal : recorded_refusals(trace))
        if (refusal.served && refusal.below() > peak && (!tightest || refusal.below() < tightest->below()))
            tightest = refusal;
    if (!tightest) return {};
    return RecordedCapacity{peak, true, tightest};
}

}  // namespace

std::vector<RecordedRefusal> recorded_refusals(const Trace& trace) {
    std::vector<RecordedRefusal> refusals;
    Bytes reserved = reserved_at_start(trace);
    std::size_t next = 0;
    std::uint32_t op = 0;
    for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
        const EventKind kind = trace.events[i].kind();
        const Bytes before = reserved;
        Bytes obtained = 0;
        bool gave_back = false;  // before it got anything
        for (; next < trace.segment_events.size() && trace.segment_events[next].before_event <= i; ++next) {
            const SegmentEvent& event = trace.segment_events[next];
            gave_back = gave_back || (!grows(event) && obtained == 0);
            if (grows(event)) obtained += event.bytes;
            reserved += grows(event) ? event.bytes : -event.bytes;
        }
        if (kind == EventKind::oom) {
            const Bytes wanted = pytorch::torch_segment_size(trace.ooms[trace.events[i].subject].requested);
            refusals.push_back({op, before, wanted, false});
        } else if (kind == EventKind::alloc && gave_back && obtained > 0) {
            refusals.push_back({op, before, obtained, true});
        }
        op += is_op(kind);
    }
    return refusals;
}

bool collects_garbage(const PolicySpec& in_force) {
    return in_force.info->torch_settings &&
           in_force.info->torch_settings(in_force.settings()).garbage_collection_threshold > 0;
}

std::optional<RecordedCapacity> capacity_of_recording(const Trace& trace, bool garbage_collected) {
    if (trace.ooms.empty() && (garbage_collected || trace.doubtful_refusal)) return {};
    if (trace.ooms.empty()) return capacity_by_retries(trace);
    Bytes reserved = reserved_at_start(trace);
    Bytes peak = reserved;
    std::optional<Bytes> full_at;
    bool refused = false;
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
        if (trace.events[i].kind() != EventKind::oom) continue;
        for (; next < trace.segment_events.size() && trace.segment_events[next].before_event <= i; ++next) {
            const SegmentEvent& event = trace.segment_events[next];
            peak = std::max(peak, reserved += grows(event) ? event.bytes : -event.bytes);
        }
        const RecordedOom& oom = trace.ooms[trace.events[i].subject];
        if (oom.device_free < 0) continue;
        refused = true;
        const Bytes left = std::max<Bytes>(0, oom.device_free - kNeverGiven) / kPage * kPage;
        if (left < pytorch::torch_segment_size(oom.requested))
            full_at = std::min(full_at.value_or(reserved + left), reserved + left);
    }
    if (!refused || peak == 0) return {};
    return RecordedCapacity{std::max(peak, full_at.value_or(0)), full_at.has_value(), {}};
}

Limits limits_for(const Trace& trace, const Limits& given, bool garbage_collected) {
    if (given.bound()) return given;
    const std::optional<RecordedCapacity> recorded = capacity_of_recording(trace, garbage_collected);
    return recorded ? recorded->limits() : Limits{};
}

}  // namespace fragsim
