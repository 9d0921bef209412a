// CuPy's memory pool: best fit among the chunks of one stream, a cudaMalloc of just the request where none is free.
//
// Rationale: a program that repeats itself asks for the same sizes again, so what was got for a request is kept for the
// next of its kind. Approach: every stream has an arena of its own, whose free chunks are binned by size in units of 512
// bytes; the smallest chunk that is large enough is cut, the rest stays in the arena, neighbours join again when both are
// free. Memory never changes its stream. When the limit or the device is in the way, every chunk that is not part of a
// larger allocation goes back, of all streams, and the request is tried once more.
// Source: cupy/cuda/memory.pyx, SingleDeviceMemoryPool and _Arena (CuPy 14.2); that the limit, too, makes the pool give
// back first: cupy#7679.
// Difference from upstream: among free chunks of one size CuPy takes any, in the order of a Python set of objects that
// are hashed by their address. Two runs of one program differ in it. Here it is the chunk with the lowest address.
#pragma once

#include <optional>
#include <vector>

#include "lib/core/ordered_blocks.hpp"
#include "lib/policy/block_policy.hpp"

namespace fragsim::cupy {

class Pool : public BlockPolicy {
public:
    static constexpr Bytes kUnit = 512;

    // `limit`: of all that is got from the device; none: no bound.
    Pool(std::optional<Bytes> limit, Device& device) : BlockPolicy(device, StreamOrder::own), limit_(limit) {}

    Bytes alignment() const override { return kUnit; }
    Bytes largest_free() const override;
    void free_sizes(std::vector<Bytes>& out) const override;
    void empty_cache() override { free_all_blocks(); }

protected:
    // A free chunk that is taken before others of its size. None: the lowest of them is.
    virtual std::optional<Address> preferred() const { return {}; }

private:
    BlockIndex take(const Request& request) override;
    void retire(BlockIndex chunk, StreamId) override;

    BlockIndex take_free(Bytes size, StreamId stream);
    void free_all_blocks();
    bool within_limit(Bytes size) const { return !limit_ || size <= *limit_ - stats_.reserved_bytes.all.current; }
    OrderedBlocks& arena_of(StreamId stream) {
        if (stream.value >= arenas_.size()) arenas_.resize(stream.value + 1u);
        return arenas_[stream.value];
    }
    OrderedBlocks::Key key(BlockIndex b) const { return {block(b).size, block(b).address}; }
    void insert(BlockIndex b) { arena_of(segment_of(b).stream).insert(key(b), b); }
    void erase(BlockIndex b) { arena_of(segment_of(b).stream).erase(key(b)); }

    std::optional<Bytes> limit_;
    std::vector<OrderedBlocks> arenas_;  // by stream: (size, address)
};

}  // namespace fragsim::cupy
