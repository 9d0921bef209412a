// PyTorch's native caching allocator.
//
// Rationale: cudaMalloc is slow and cudaFree waits for the device, so segments are kept and cut into blocks.
// Approach: sizes are rounded, small and large ones live in separate pools, each stream has its own free blocks; the
// smallest block that fits is taken, its rest stays free, neighbours join again. When nothing fits the device is asked;
// when it refuses, cached memory is given back step by step and the device is asked again.
// Source: spec/pytorch-caching-allocator.md, sections 2 to 12 (PyTorch 2.0 to 2.15; upstream's
// c10/cuda/CUDACachingAllocator.cpp), the version switches of section 17.
// Differences from upstream: blocks that wait for other streams are retired in the order of their frees (upstream: hash
// order of streams, which decides no placement known). Expandable segments and private pools are not here.
//
//   segment  [block|block|block.........]   a doubly linked list of blocks in address order
//   pool     free blocks by (stream, size, tie); tie: address up to 2.12, from 2.13 (age of the segment, address)
#pragma once

#include <optional>
#include <vector>

#include "lib/policy/ordered_blocks.hpp"
#include "lib/policy/policy.hpp"
#include "policies/pytorch/native_config.hpp"

namespace fragsim::pytorch {

class CachingAllocator final : public Policy {
public:
    CachingAllocator(const NativeConfig& config, const PolicyContext& context);

    std::optional<Placement> allocate(BufferId buffer, Bytes requested, StreamId stream) override;
    void free(BufferId buffer) override;
    void free_requested(BufferId buffer) override;
    void free_completed(BufferId buffer) override;
    void empty_cache() override { release_cached(); }
    bool restore(const MemoryPicture& start) override;

    const AllocatorStats& stats() const override { return stats_; }
    Bytes largest_free() const override;
    void free_sizes(std::vector<Bytes>& out) const override;
    MemoryPicture picture() const override;

private:
    using BlockIndex = std::uint32_t;
    static constexpr BlockIndex kNone = 0xffffffffu;

    struct Block {
        Address address;
        Bytes size;
        Bytes requested;       // of the last buffer it served
        BlockIndex prev, next;  // neighbours in the segment
        std::uint32_t segment;
        std::uint32_t gc_base;  // the pool's lookups when it last became free
        BufferId buffer;       // none when free
        std::uint16_t stream;
        SizeClass size_class;
        BlockState state;
    };
    struct Segment {
        Address address;
        Bytes size;
        std::uint32_t serial;  // age: segments count from 1
        BlockIndex first;      // kNone: unused slot
    };
    struct Pool {
        std::vector<OrderedBlocks> free;  // by stream
        std::uint32_t lookups = 0;        // clock of the garbage collection
    };

    // Getting a block.
    BlockIndex take_cached(SizeClass size_class, Bytes size, std::uint16_t stream);
    BlockIndex grow(SizeClass size_class, Bytes size, std::uint16_t stream);
    BlockIndex new_segment(SizeClass size_class, Bytes size, std::uint16_t stream);
    bool should_split(const Block& block, Bytes size) const;
    BlockIndex split(BlockIndex block, Bytes size);

    // Giving memory back.
    void end_use(BlockIndex block);   // the program let go
    void retire(BlockIndex block);    // the memory may be reused
    Bytes merge(BlockIndex into, BlockIndex neighbour);
    void collect_garbage();
    bool release_oversize(SizeClass size_class, Bytes size, std::uint16_t stream);
    void release_cached();
    void release_unsplit(SizeClass size_class);
    void release_segment(BlockIndex only_block);
    void complete_pending();

    // Bookkeeping.
    BlockIndex new_block();
    OrderedBlocks& free_blocks(SizeClass size_class, std::uint16_t stream) {
        std::vector<OrderedBlocks>& free = pool(size_class).free;
        if (stream >= free.size()) free.resize(stream + 1u);
        return free[stream];
    }
    OrderedBlocks::Key key(const Block& block) const;
    void insert_free(BlockIndex block);
    void erase_free(const Block& block);
    bool is_split(const Block& block) const { return block.prev != kNone || block.next != kNone; }
    Pool& pool(SizeClass size_class) { return pools_[static_cast<std::size_t>(size_class)]; }
    BlockIndex& block_of(BufferId buffer) {
        if (buffer.value >= block_of_buffer_.size()) grow_buffers(buffer);
        return block_of_buffer_[buffer.value];
    }
    void grow_buffers(BufferId buffer);
    std::uint32_t add_segment(Address address, Bytes size, BlockIndex first);

    NativeConfig config_;
    Device& device_;
    std::optional<Bytes> limit_;    // on reserved bytes
    std::optional<Bytes> rejects_;  // throw_on_cudamalloc_oom: more is refused without a try
    bool gc_on_, serial_ties_;

    std::vector<Block> blocks_;
    std::vector<BlockIndex> unused_blocks_;
    std::vector<BlockIndex> block_of_buffer_;
    std::vector<Segment> segments_;
    std::vector<std::uint32_t> unused_segments_;
    std::uint32_t next_serial_ = 1;
    std::array<Pool, 2> pools_;
    std::vector<BufferId> pending_;      // in the order of their frees; some may be complete by now
    std::size_t pending_incomplete_ = 0;
    bool rejected_ = false;
    AllocatorStats stats_;
};

}  // namespace fragsim::pytorch
