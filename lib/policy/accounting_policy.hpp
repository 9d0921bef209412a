// What most policies have in common: which buffer is where, frees that wait for streams, PyTorch's statistics. A policy
// derived from this says where a request goes and what happens when memory comes back; the rest is here.
//
// A free that waits is given back when it completes. When a request fails, the policy may make room, and the request is
// tried once more; unless it says otherwise all streams are synchronised and the frees that wait are given back.
#pragma once

#include <vector>

#include "lib/policy/policy.hpp"

namespace fragsim {

class AccountingPolicy : public Policy {
public:
    std::optional<Placement> allocate(BufferId buffer, const Request& request) final;
    void free(BufferId buffer) final;
    void free_requested(BufferId buffer) final;
    void free_completed(BufferId buffer) final;
    const AllocatorStats& stats() const final { return stats_; }

protected:
    // Who keeps the order of streams when memory freed on one is handed out on another.
    enum class StreamOrder {
        // This class: before a stream gets anything, it waits for every stream that has freed memory since its last
        // wait. Safe for every policy, and more than needed: it does not know whose memory is handed out.
        inserted,
        own,  // the policy, or the device below it
    };

    struct Place {
        Address address;
        Bytes size;
        std::uint32_t handle;  // the policy's own
    };
    struct Live {
        Place place;
        Bytes requested;
        StreamId stream;
        BlockState state = BlockState::inactive;
        bool waited = false;  // its free was requested before it completed: other streams have used it
    };

    AccountingPolicy(Device& device, StreamOrder order) : device_(device), order_(order) {}

    // None: out of memory.
    virtual std::optional<Place> place(const Request& request) = 0;
    // The memory may be reused, by `stream` at once.
    virtual void give_back(const Place& place, StreamId stream) = 0;
    // The stream that a buffer's memory is freed on, once it waits for whatever else has used it.
    virtual StreamId stream_to_free_on(BufferId, const Live& live) { return live.stream; }
    // A request failed. True: it is worth another try.
    virtual bool make_room();
    // Waits for all streams, after which no free waits any more. False: none did, nothing was waited for.
    bool complete_pending();

    // Memory got from the device, or given back to it, in `segments` pieces.
    void add_reserved(Bytes bytes, std::int64_t segments);
    void remove_reserved(Bytes bytes, std::int64_t segments);

    // By BufferId; inactive: not in use.
    const std::vector<Live>& buffers() const { return live_; }
    // The buffer whose place has each handle, for drawing; `handles`: one more than the largest.
    std::vector<BufferId> buffers_by_handle(std::size_t handles) const;

    // What the program asked for in the buffers it has not let go.
    Bytes requested_in_hands() const { return requested_in_hands_; }

    Device& device_;
    AllocatorStats stats_;

private:
    void let_go(Live& live);
    void complete(BufferId buffer);
    void order_streams(StreamId stream);

    StreamOrder order_;
    Bytes requested_in_hands_ = 0;
    std::vector<Live> live_;
    std::vector<BufferId> pending_;                 // free requested; some may be complete by now
    std::vector<std::uint64_t> frees_;              // by stream
    std::vector<std::vector<std::uint64_t>> seen_;  // by stream: how many frees of each other it has waited for
};

}  // namespace fragsim
