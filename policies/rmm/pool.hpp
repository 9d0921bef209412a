// RMM's pool: best fit with coalescing, one free list for each stream.
//
// Rationale: memory freed on a stream can be used on it again without waiting; another stream has to wait for an event.
// Approach: the own list first; then a block of another stream's list, after a wait; then other streams' lists are
// joined to the own one, one after the other, until something fits; then the pool grows, as a rule by its own size.
// Where the maximum is in the way of that, upstream blocks that are wholly free go back, lowest first, until there is room.
// Source: spec/policies.md, section 3.1 (rapidsai/rmm, 07/2026: pool_memory_resource_impl,
// stream_ordered_memory_resource, coalescing_free_list); giving back: RMM 26.10,
// cpp/src/mr/detail/pool_memory_resource_impl.cpp, expand_pool and reclaim_free_blocks.
// What is got at the start is in the list of the legacy default stream (initialize_pool). A program that runs on streams of
// its own, as those recorded, never frees to that list; first_stream_is_default says that its first stream is the one.
// Differences from upstream: other streams come in the order of their numbers (upstream: of their events' addresses).
#pragma once

#include "lib/core/ordered_blocks.hpp"
#include "lib/policy/block_policy.hpp"
#include "lib/policy/parameters.hpp"

namespace fragsim::rmm {

inline constexpr Bytes kAlign = 256;

struct PoolConfig {
    Bytes initial;                 // got when the pool is made
    std::optional<Bytes> maximum;  // of the pool's size
    bool first_is_default;         // the program's first stream is the legacy default stream
};
std::vector<PolicyParameter> pool_parameters();
PoolConfig read_pool_config(const ParameterReader& read);

class Pool : public BlockPolicy {
public:
    Pool(const PoolConfig& config, Device& device);

    Bytes alignment() const override { return kAlign; }
    Bytes largest_free() const override;
    void free_sizes(std::vector<Bytes>& out) const override;

protected:
    using List = std::uint32_t;  // a free list, as blocks' sets
    static constexpr List kDefaultStream = 0;
    static constexpr std::uint32_t kOther = 1u << 17;  // sets from here on are no list of the pool's
    List list_of(StreamId stream) const { return stream.value + (config_.first_is_default ? 0 : 1); }

    BlockIndex take(const Request& request) override { return take_bytes(request.bytes, list_of(request.stream)); }
    void retire(BlockIndex block, StreamId stream) override;

    BlockIndex take_bytes(Bytes bytes, List list);
    // The stream of one list waits for what was freed to another. What the default stream has from the start was never
    // used.
    void wait(List waiter, List on) {
        if (on != kDefaultStream || config_.first_is_default) device_.wait(stream_of(waiter), stream_of(on));
    }
    StreamId stream_of(List list) const { return {list == kDefaultStream || config_.first_is_default ? list : list - 1}; }

private:
    BlockIndex take_from(List list, Bytes size);
    BlockIndex merge_lists(Bytes size, List list);
    BlockIndex grow(Bytes size, List list);
    Bytes size_to_grow(Bytes size) const;
    void reclaim_free_blocks(Bytes size, List list);
    void insert(BlockIndex block, List list);  // joins it with its neighbours in the list
    void enter(BlockIndex block, List list);   // as it is
    void erase(BlockIndex b) { blocks_of(block(b).set).erase(OrderedBlocks::Key{block(b).size, block(b).address}); }
    OrderedBlocks& blocks_of(List list) {
        if (list >= lists_.size()) lists_.resize(list + 1u);
        return lists_[list];
    }

    PoolConfig config_;
    std::vector<OrderedBlocks> lists_;  // by (size, address)
};

}  // namespace fragsim::rmm
