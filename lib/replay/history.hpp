// What a policy did during a replay, in the words and the order of PyTorch's own history: every allocation with its
// address, every free, every driver call. Source: spec/pytorch-caching-allocator.md, section 15.
#pragma once

#include <vector>

#include "lib/replay/replay.hpp"

namespace fragsim {

enum class HistoryAction : std::uint8_t {
    alloc,
    free_requested,
    free_completed,
    segment_alloc,
    segment_free,
    segment_map,
    segment_unmap,
    oom,
    rejection  // a request refused before anything was given back: PyTorch counts it and records no entry
};
const char* name(HistoryAction action);

struct HistoryEntry {
    HistoryAction action;
    StreamId stream;
    BufferId buffer;      // of alloc and the frees
    std::uint32_t event;  // of the trace, during which it happened
    Address address;      // 0 for oom and rejection
    Bytes bytes;  // as PyTorch writes it: requested bytes, bytes of a segment, a failed request as the policy rounds it
    Bytes allocated = 0;  // of alloc: what the policy set aside
};

class HistoryRecorder final : public ReplayObserver {
public:
    // All must outlive this.
    HistoryRecorder(const Trace& trace, const Policy& policy, const LoggedDevice& device);

    void observe(const Step& step) override;

    std::vector<HistoryEntry> take() { return std::move(entries_); }

private:
    void add(HistoryAction action, const Step& step, BufferId buffer);
    void complete_pending(const Step& step);
    void add_device_calls(const Step& step);

    const Trace& trace_;
    const Policy& policy_;
    const AllocatorStats& stats_;
    const LoggedDevice& device_;
    std::size_t calls_seen_;
    std::int64_t waits_seen_;
    std::vector<Address> address_of_;  // by buffer; 0: not live
    std::vector<BufferId> pending_;
    std::vector<HistoryEntry> entries_;
};

}  // namespace fragsim
