// RMM's pool: best fit with coalescing, one free list for each stream.
//
// Rationale: memory freed on a stream can be used on it again without waiting; another stream has to wait for an event.
// Approach: the own list first; then a block of another stream's list, after a wait; then other streams' lists are
// joined to the own one, one after the other, until something fits; then the pool grows, as a rule by its own size.
// Source: spec/policies.md, section 3.1 (rapidsai/rmm, 07/2026: pool_memory_resource_impl,
// stream_ordered_memory_resource, coalescing_free_list).
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
    // The sets of blocks: a stream's free list has the stream's number, others are from kOther on.
    static constexpr std::uint32_t kOther = 1u << 16;

    BlockIndex take(const Request& request) override { return take_bytes(request.bytes, request.stream); }
    void retire(BlockIndex block, StreamId stream) override;

    BlockIndex take_bytes(Bytes bytes, StreamId stream);
    OrderedBlocks& list_of(std::uint32_t stream) {
        if (stream >= lists_.size()) lists_.resize(stream + 1u);
        return lists_[stream];
    }

private:
    BlockIndex take_from(std::uint32_t stream, Bytes size);
    BlockIndex merge_lists(Bytes size, std::uint32_t stream);
    BlockIndex grow(Bytes size, StreamId stream);
    Bytes size_to_grow(Bytes size) const;
    void insert(BlockIndex block, std::uint32_t stream);  // joins it with its neighbours in the list
    void enter(BlockIndex block, std::uint32_t stream);   // as it is
    void erase(BlockIndex b) { list_of(block(b).set).erase(OrderedBlocks::Key{block(b).size, block(b).address}); }

    PoolConfig config_;
    std::vector<OrderedBlocks> lists_;  // by stream: (size, address)
};

}  // namespace fragsim::rmm
