// PyTorch's native caching allocator.
//
// Rationale: cudaMalloc is slow and cudaFree waits for the device, so segments are kept and cut into blocks.
// Approach: sizes are rounded, small and large ones live in separate pools, each stream has its own free blocks; the
// smallest block that fits is taken, its rest stays free, neighbours join again. When nothing fits the device is asked;
// when it refuses, cached memory is given back step by step and the device is asked again.
// Source: spec/pytorch-caching-allocator.md (PyTorch 2.0 to 2.15; upstream's c10/cuda/CUDACachingAllocator.cpp), with
// the version switches of its section 17. Files: caching_allocator.cpp sections 5, 6, 10; release.cpp 8, 9;
// expandable_segments.cpp 14; memory_picture.cpp 15.4.
// Differences from upstream: blocks that wait for other streams are retired in the order of their frees, freeable
// private pools are released in the order of their index (upstream: hash order, which decides no placement known).
// Whether a graph is being captured is not recorded: a request for a private pool stands for it.
//
//   segment  [block|block|block.........]   a doubly linked list of blocks in address order
//   expandable segment  [block|block|..unmapped..|block|........unmapped........]
//   pool     free blocks by (stream, size, tie); tie: address up to 2.12, from 2.13 (age of the segment, address)
#pragma once

#include <optional>
#include <vector>

#include "lib/core/ordered_blocks.hpp"
#include "lib/policy/policy.hpp"
#include "policies/pytorch/native_config.hpp"
#include "policies/pytorch/threshold.hpp"

namespace fragsim::pytorch {

class CachingAllocator final : public Policy {
public:
    CachingAllocator(const NativeConfig& config, const PolicyContext& context);

    std::optional<Placement> allocate(BufferId buffer, const Request& request) override;
    void free(BufferId buffer) override;
    void free_requested(BufferId buffer) override;
    void free_completed(BufferId buffer) override;
    void empty_cache() override { release_cached(); }
    void release_pool(std::uint16_t pool) override;
    void empty_pool(std::uint16_t pool) override;
    bool restore(const MemoryPicture& start) override;

    Bytes rounded(Bytes requested) const override { return config_.round_size(requested); }
    const AllocatorStats& stats() const override { return stats_; }
    Bytes largest_free() const override;
    void free_sizes(std::vector<Bytes>& out) const override;
    MemoryPicture picture() const override;
    Barrier barrier(const SegmentPicture& segment, const Request& request) const override;
    Bytes page_of(const SegmentPicture& segment) const override {
        return !segment.expandable ? 0 : segment.small ? kSmallSegment : config_.large_segment_size;
    }
    std::vector<SameCourse> same_course() const override;

private:
    using BlockIndex = std::uint32_t;
    static constexpr BlockIndex kNone = 0xffffffffu;

    struct Block {
        Address address;
        Bytes size;
        Bytes requested;        // of the last buffer it served
        BlockIndex prev, next;  // neighbours in the segment
        std::uint32_t segment;
        std::uint32_t gc_base;  // the pool's lookups when it last became free
        BufferId buffer;        // none when free
        BlockState state;
        bool mapped;  // has memory; false only in expandable segments
    };
    // What cudaMalloc returned, or a reserved range that memory is mapped into: an expandable segment.
    struct Segment {
        Address address;
        Bytes size;
        Bytes page;            // of an expandable segment, else 0
        std::uint32_t serial;  // age: segments count from 1
        BlockIndex first;      // kNone: unused slot
        std::uint16_t stream;
        std::uint16_t pool;  // index into pools_
        bool expandable() const { return page > 0; }
    };
    struct Pool {
        SizeClass size_class;
        std::vector<OrderedBlocks> free;                // mapped, by stream
        std::vector<std::vector<BlockIndex>> unmapped;  // by stream, then address
        std::uint32_t lookups = 0;                      // clock of the garbage collection
        OrderedBlocks& free_on(std::uint16_t stream) {
            if (stream >= free.size()) free.resize(stream + 1u);
            return free[stream];
        }
    };
    // A request on its way: rounded, and where it may be served from.
    struct Wanted {
        Bytes size;
        std::uint16_t pool;  // index into pools_
        std::uint16_t stream;
        bool capturing;  // a capture forbids what waits for the device
    };

    // Getting a block.
    std::optional<Placement> hand_out(BlockIndex block, BufferId buffer, const Request& request, Bytes size);
    BlockIndex take_cached(const Wanted& wanted, bool expandable);
    BlockIndex grow(const Wanted& wanted);
    BlockIndex borrow(const Wanted& wanted);
    BlockIndex new_memory(const Wanted& wanted);
    bool should_split(const Block& block, Bytes size, bool expandable);
    BlockIndex split(BlockIndex block, Bytes size);

    // Giving memory back.
    void end_use(BlockIndex block);  // the program let go
    void retire(BlockIndex block);   // the memory may be reused
    Bytes merge(BlockIndex into, BlockIndex neighbour);
    void collect_garbage();
    bool release_oversize(const Wanted& wanted);
    void release_cached();
    void release_unused(std::uint16_t pool);
    void release_segment(BlockIndex only_block);
    void complete_pending(std::optional<std::uint16_t> only_pool);

    // Expandable segments.
    OrderedBlocks::Position prefer_holes(
        const OrderedBlocks& free, OrderedBlocks::Position best, bool expandable) const;
    BlockIndex map_more(const Wanted& wanted);
    BlockIndex place_to_map(const Wanted& wanted);
    BlockIndex reserve_segment(const Wanted& wanted);
    BlockIndex map_block(BlockIndex unmapped, Bytes bytes);
    void unmap_block(BlockIndex free);
    BlockIndex cut_front(BlockIndex block, Bytes size);
    bool usable(BlockIndex block) const;
    void insert_unmapped(BlockIndex block);
    void erase_unmapped(BlockIndex block);

    // Bookkeeping.
    BlockIndex new_block(const Block& block);
    std::uint32_t new_segment(const Segment& segment);
    Segment& segment_of(const Block& block) { return segments_[block.segment]; }
    const Segment& segment_of(const Block& block) const { return segments_[block.segment]; }
    SizeClass class_of(const Block& block) const { return pools_[segment_of(block).pool].size_class; }
    OrderedBlocks::Key key(const Block& block) const;
    void insert_free(BlockIndex block);
    void erase_free(const Block& block);
    bool is_split(const Block& block) const { return block.prev != kNone || block.next != kNone; }
    BlockIndex& block_of(BufferId buffer) {
        if (buffer.value >= block_of_buffer_.size()) grow_buffers(buffer);
        return block_of_buffer_[buffer.value];
    }
    void grow_buffers(BufferId buffer);
    void add_pools(std::uint16_t memory_pool);

    // pools_[2 p] holds the small blocks of memory pool p, pools_[2 p + 1] the large ones.
    static std::uint16_t pool_index(std::uint16_t memory_pool, SizeClass size_class) {
        return static_cast<std::uint16_t>(2 * memory_pool + static_cast<std::uint16_t>(size_class));
    }

    NativeConfig config_;
    Device& device_;
    std::vector<PoolName> pool_names_;
    std::optional<Bytes> limit_;    // on reserved bytes
    std::optional<Bytes> rejects_;  // throw_on_cudamalloc_oom: more is refused without a try
    bool gc_on_, serial_ties_;
    Threshold split_limit_;     // max_split_size_mb
    Threshold split_rounding_;  // max_non_split_rounding_mb
    Threshold gc_limit_;        // garbage_collection_threshold, in bytes: reserved memory above it is collected

    std::vector<Block> blocks_;
    std::vector<BlockIndex> unused_blocks_;
    std::vector<BlockIndex> block_of_buffer_;
    std::vector<Segment> segments_;
    std::vector<std::uint32_t> unused_segments_;
    std::uint32_t next_serial_ = 1;
    std::vector<Pool> pools_;
    std::vector<bool> freeable_;     // by memory pool: nothing refers to it any more
    std::vector<BufferId> pending_;  // in the order of their frees; some may be complete by now
    std::size_t pending_incomplete_ = 0;
    bool rejected_ = false;
    AllocatorStats stats_;
};

}  // namespace fragsim::pytorch
