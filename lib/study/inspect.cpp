#include "lib/study/inspect.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace fragsim {

PictureSummary summarize(const MemoryPicture& picture) {
    PictureSummary summary;
    summary.segments = static_cast<std::int64_t>(picture.segments.size());
    summary.blocks = static_cast<std::int64_t>(picture.blocks.size());
    std::vector<Bytes> free;
    for (const SegmentPicture& segment : picture.segments) {
        summary.reserved += segment.size;
        for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
            const BlockPicture& block = picture.blocks[i];
            if (block.state == BlockState::active_allocated) summary.allocated += block.size;
            if (block.state == BlockState::active_pending_free) summary.pending += block.size;
            if (block.state != BlockState::inactive) continue;
            free.push_back(block.size);
            if (segment.block_count == 1) summary.releasable += block.size;
        }
    }
    summary.free = FreeSpace(std::move(free));
    return summary;
}

TraceSummary summarize(const Trace& trace) {
    TraceSummary summary;
    Bytes requested = 0, load = 0, reserved = 0;
    const auto change = [&](BufferId buffer, int sign) {
        const Bytes bytes = trace.buffers[buffer.value].requested;
        requested += sign * bytes;
        load += sign * round_up(bytes, 512);
        summary.requested_peak = std::max(summary.requested_peak, requested);
        summary.load = std::max(summary.load, load);
    };
    for (const BlockPicture& block : trace.initial.blocks)
        if (block.buffer) change(block.buffer, +1);
    for (const SegmentPicture& segment : trace.initial.segments) reserved += segment.size;

    for (const Event event : trace.events) {
        switch (event.kind()) {
            case EventKind::alloc:
                ++summary.allocs;
                summary.requested_by_log2[static_cast<std::size_t>(
                    63 - std::countl_zero(static_cast<std::uint64_t>(trace.buffers[event.subject].requested)))] +=
                    trace.buffers[event.subject].requested;
                summary.largest_request = std::max(summary.largest_request, trace.buffers[event.subject].requested);
                change(event.buffer(), +1);
                break;
            case EventKind::free:
            case EventKind::free_completed:
                ++summary.frees;
                change(event.buffer(), -1);
                break;
            case EventKind::free_requested: ++summary.pending_frees; break;
            case EventKind::empty_cache: ++summary.empty_caches; break;
            case EventKind::record_stream: ++summary.record_streams; break;
            case EventKind::release_pool:
            case EventKind::empty_pool:
            case EventKind::synchronize:
            case EventKind::marker:
            case EventKind::oom: break;
        }
    }
    summary.streams = static_cast<std::int64_t>(trace.streams.size());
    summary.recorded_reserved_peak = reserved;
    for (const SegmentEvent& event : trace.segment_events) {
        const bool grows = event.kind == SegmentEventKind::alloc || event.kind == SegmentEventKind::map;
        reserved += grows ? event.bytes : -event.bytes;
        summary.recorded_reserved_peak = std::max(summary.recorded_reserved_peak, reserved);
    }
    if (!trace.time_us.empty()) summary.duration_us = trace.time_us.back() - trace.time_us.front();
    if (!trace.initial.segments.empty()) summary.start = summarize(trace.initial);
    if (trace.final) summary.end = summarize(*trace.final);
    return summary;
}

std::optional<Steps> count_steps(const Recording& recording, const Trace& trace) {
    if (trace.time_us.empty()) return {};
    std::map<std::string, std::int64_t> ends;
    for (const Annotation& annotation : recording.annotations)
        if (annotation.stage == Annotation::Stage::end && annotation.time_us >= trace.time_us.front() &&
            annotation.time_us <= trace.time_us.back())
            ++ends[annotation.name];
    std::optional<Steps> steps;
    for (const auto& [name, count] : ends) {
        const bool optimizer = name.starts_with("Optimizer.step"),
                   known = steps && steps->name.starts_with("Optimizer.step");
        if (!steps || (optimizer && !known) || (optimizer == known && count > steps->count)) steps = Steps{name, count};
    }
    return steps;
}

}  // namespace fragsim
