#include "lib/replay/history.hpp"

#include <algorithm>

namespace fragsim {

const char* name(HistoryAction action) {
    static constexpr const char* kNames[] = {"alloc", "free_requested", "free_completed", "segment_alloc",
        "segment_free", "segment_map", "segment_unmap", "oom", "rejection"};
    return kNames[static_cast<int>(action)];
}

HistoryRecorder::HistoryRecorder(const Trace& trace, const Policy& policy, const LoggedDevice& device)
    : trace_(trace), policy_(policy), stats_(policy.stats()), device_(device), calls_seen_(device.calls().size()),
      waits_seen_(policy.stats().num_sync_all_streams), address_of_(trace.buffers.size()) {
    for (const BlockPicture& block : policy.picture().blocks) {
        if (!block.buffer) continue;
        address_of_[block.buffer.value] = block.address;
        if (block.state == BlockState::active_pending_free) pending_.push_back(block.buffer);
    }
    entries_.reserve(trace.events.size() * 3 / 2);
}

void HistoryRecorder::observe(const Step& step) {
    if (stats_.num_sync_all_streams != waits_seen_) complete_pending(step);
    add_device_calls(step);
    switch (step.kind) {
        case EventKind::alloc: {
            const Buffer& buffer = trace_.buffers[step.buffer.value];
            if (step.placement) {
                address_of_[step.buffer.value] = step.placement->address;
                add(HistoryAction::alloc, step, step.buffer);
                entries_.back().allocated = step.placement->allocated;
            } else {
                entries_.push_back({step.rejected ? HistoryAction::rejection : HistoryAction::oom, buffer.stream_id(),
                    {}, step.event, 0, policy_.rounded(buffer.requested)});
            }
            break;
        }
        case EventKind::free:
            add(HistoryAction::free_requested, step, step.buffer);
            add(HistoryAction::free_completed, step, step.buffer);
            break;
        case EventKind::free_requested:
            add(HistoryAction::free_requested, step, step.buffer);
            pending_.push_back(step.buffer);
            break;
        case EventKind::free_completed:
            if (const auto waiting = std::find(pending_.begin(), pending_.end(), step.buffer);
                waiting != pending_.end()) {
                add(HistoryAction::free_completed, step, step.buffer);
                pending_.erase(waiting);
            }
            break;
        default: break;
    }
}

void HistoryRecorder::add(HistoryAction action, const Step& step, BufferId id) {
    const Buffer& buffer = trace_.buffers[id.value];
    entries_.push_back({action, buffer.stream_id(), id, step.event, address_of_[id.value], buffer.requested});
}

// The policy waited for all streams, which PyTorch does before it releases anything.
void HistoryRecorder::complete_pending(const Step& step) {
    waits_seen_ = stats_.num_sync_all_streams;
    for (const BufferId buffer : pending_) add(HistoryAction::free_completed, step, buffer);
    pending_.clear();
}

void HistoryRecorder::add_device_calls(const Step& step) {
    for (; calls_seen_ < device_.calls().size(); ++calls_seen_) {
        const DriverCall& call = device_.calls()[calls_seen_];
        const auto add_call = [&](HistoryAction action) {
            entries_.push_back({action, call.stream, {}, step.event, call.address, call.bytes});
        };
        switch (call.kind) {
            case DriverCallKind::malloc: add_call(HistoryAction::segment_alloc); break;
            case DriverCallKind::free: add_call(HistoryAction::segment_free); break;
            case DriverCallKind::map: add_call(HistoryAction::segment_map); break;
            case DriverCallKind::unmap: add_call(HistoryAction::segment_unmap); break;
            default: break;  // PyTorch records none of the others
        }
    }
}

}  // namespace fragsim
