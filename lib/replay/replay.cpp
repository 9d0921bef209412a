#include "lib/replay/replay.hpp"

#include <algorithm>
#include <vector>

#include "lib/core/error.hpp"

namespace fragsim {

bool restore_start(const Trace& trace, Policy& policy) {
    if (trace.initial.segments.empty() || policy.restore(trace.initial)) return true;
    for (const BlockPicture& block : trace.initial.blocks) {
        if (block.state == BlockState::inactive) continue;
        const Buffer& buffer = trace.buffers[block.buffer.value];
        if (policy.allocate(block.buffer, request_of(buffer)) && block.state == BlockState::active_pending_free)
            policy.free_requested(block.buffer);
    }
    return false;
}

ReplayOutcome replay(const Trace& trace, Policy& policy, LoggedDevice& device,
    std::span<ReplayObserver* const> observers, const ReplayOptions& options) {
    ReplayOutcome outcome;
    std::vector<bool> skipped(trace.buffers.size());
    const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(options.end_event, trace.events.size()));
    for (std::uint32_t i = 0; i < end; ++i) {
        const Event event = trace.events[i];
        EventKind kind = event.kind();
        if (options.frees == Frees::completed) {
            if (kind == EventKind::free_requested) continue;
            if (kind == EventKind::free_completed) kind = EventKind::free;
        }
        Step step{i, outcome.ops, kind, {}, {}};
        device.begin_op(outcome.ops);
        if (is_op(step.kind)) ++outcome.ops;
        switch (step.kind) {
            case EventKind::alloc: {
                step.buffer = event.buffer();
                const Buffer& buffer = trace.buffers[step.buffer.value];
                step.placement = policy.allocate(step.buffer, request_of(buffer));
                if (!step.placement) {
                    skipped[step.buffer.value] = true;
                    ++outcome.ooms;
                }
                break;
            }
            case EventKind::free:
            case EventKind::free_requested:
            case EventKind::free_completed:
                step.buffer = event.buffer();
                if (skipped[step.buffer.value]) continue;
                if (step.kind == EventKind::free)
                    policy.free(step.buffer);
                else if (step.kind == EventKind::free_requested)
                    policy.free_requested(step.buffer);
                else
                    policy.free_completed(step.buffer);
                break;
            case EventKind::record_stream: {
                const StreamUse& use = trace.stream_uses[event.subject];
                step.buffer = use.buffer;
                if (skipped[use.buffer.value]) continue;
                policy.record_stream(use.buffer, use.stream);
                break;
            }
            case EventKind::empty_cache: policy.empty_cache(); break;
            case EventKind::release_pool: policy.release_pool(static_cast<std::uint16_t>(event.subject)); break;
            case EventKind::empty_pool: policy.empty_pool(static_cast<std::uint16_t>(event.subject)); break;
            case EventKind::synchronize:
                policy.synchronize(
                    event.subject == Event::kAllStreams ? std::nullopt : std::optional(StreamId{event.subject}));
                break;
            case EventKind::marker:
            case EventKind::oom: continue;  // a request that the recorded run did not get is no step of its program
        }
        for (ReplayObserver* observer : observers) observer->observe(step);
        if (step.kind == EventKind::alloc && !step.placement && options.on_oom == OnOom::stop) {
            outcome.stopped = true;
            break;
        }
    }
    return outcome;
}

}  // namespace fragsim
