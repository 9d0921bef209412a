#include "lib/replay/replay.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/core/error.hpp"

namespace fragsim {

Restored restore_start(const Trace& trace, Policy& policy, Frees frees, bool adopt) {
    Restored restored;
    MemoryPicture initial = trace.initial;
    for (BlockPicture& block : initial.blocks)
        if (frees == Frees::completed && block.state == BlockState::active_pending_free)
            block.state = BlockState::active_allocated;
    if (initial.segments.empty() || (adopt && policy.restore(initial))) {
        restored.adopted = true;
        return restored;
    }
    std::vector<BufferId> pending;
    for (const BlockPicture& block : initial.blocks) {
        if (block.state == BlockState::inactive) continue;
        const std::int64_t waits = policy.stats().num_sync_all_streams;
        const Buffer& buffer = trace.buffers[block.buffer.value];
        const std::optional<Placement> placement = policy.allocate(block.buffer, request_of(buffer));
        if (policy.stats().num_sync_all_streams != waits) {  // to make room, and the frees that waited are complete
            std::erase_if(restored.placed, [&](const auto& placed) {
                return std::find(pending.begin(), pending.end(), placed.first) != pending.end();
            });
            pending.clear();
        }
        if (!placement) {
            restored.left_out.push_back(block.buffer);
            continue;
        }
        restored.placed.emplace_back(block.buffer, *placement);
        if (block.state != BlockState::active_pending_free) continue;
        policy.free_requested(block.buffer);
        pending.push_back(block.buffer);
    }
    return restored;
}

namespace {

// The buffer that an event is about; none: it is about none.
BufferId buffer_of(const Trace& trace, Event event) {
    switch (event.kind()) {
        case EventKind::alloc:
        case EventKind::free:
        case EventKind::free_requested:
        case EventKind::free_completed: return event.buffer();
        case EventKind::record_stream: return trace.stream_uses[event.subject].buffer;
        default: return {};
    }
}

void drive(const Trace& trace, Event event, Step& step, Policy& policy) {
    switch (step.kind) {
        case EventKind::alloc:
            step.placement = policy.allocate(step.buffer, request_of(trace.buffers[step.buffer.value]));
            break;
        case EventKind::free: policy.free(step.buffer); break;
        case EventKind::free_requested: policy.free_requested(step.buffer); break;
        case EventKind::free_completed: policy.free_completed(step.buffer); break;
        case EventKind::record_stream:
            policy.record_stream(step.buffer, trace.stream_uses[event.subject].stream);
            break;
        case EventKind::empty_cache: policy.empty_cache(); break;
        case EventKind::release_pool: policy.release_pool(static_cast<std::uint16_t>(event.subject)); break;
        case EventKind::empty_pool: policy.empty_pool(static_cast<std::uint16_t>(event.subject)); break;
        case EventKind::synchronize:
            policy.synchronize(
                event.subject == Event::kAllStreams ? std::nullopt : std::optional(StreamId{event.subject}));
            break;
        case EventKind::marker:
        case EventKind::oom: break;
    }
}

}  // namespace

ReplayOutcome replay(const Trace& trace, Policy& policy, LoggedDevice& device,
    std::span<ReplayObserver* const> observers, const ReplayOptions& options) {
    ReplayOutcome outcome;
    std::vector<bool> skipped(trace.buffers.size());
    for (const BufferId buffer : options.left_out) skipped[buffer.value] = true;
    std::int64_t rejections = policy.stats().num_oom_rejections;
    const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(options.end_event, trace.events.size()));
    for (std::uint32_t i = 0; i < end; ++i) {
        outcome.events = i + 1;
        const Event event = trace.events[i];
        EventKind kind = event.kind();
        if (options.frees == Frees::completed) {
            if (kind == EventKind::free_requested) continue;
            if (kind == EventKind::free_completed) kind = EventKind::free;
        }
        Step step{i, outcome.ops, kind, buffer_of(trace, event), {}};
        device.begin_op(outcome.ops);
        if (is_op(kind)) ++outcome.ops;
        // A request that the recorded run did not get is no step of its program.
        if (kind == EventKind::marker || kind == EventKind::oom) continue;
        if (step.buffer && kind != EventKind::alloc && skipped[step.buffer.value]) continue;
        for (ReplayObserver* observer : options.before) observer->before(step);
        drive(trace, event, step, policy);
        step.rejected =
            policy.stats().num_oom_rejections != std::exchange(rejections, policy.stats().num_oom_rejections);
        for (ReplayObserver* observer : observers) observer->observe(step);
        if (kind != EventKind::alloc || step.placement) continue;
        skipped[step.buffer.value] = true;
        ++outcome.ooms;
        outcome.failed.push_back(i);
        if (options.on_oom == OnOom::stop) {
            outcome.stopped = true;
            break;
        }
    }
    return outcome;
}

}  // namespace fragsim
