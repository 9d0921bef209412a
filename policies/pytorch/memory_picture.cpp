// The allocator's memory from outside: drawing it, and taking over what a recording begins with (section 15.4).
#include <algorithm>

#include "policies/pytorch/caching_allocator.hpp"

namespace fragsim::pytorch {

Bytes CachingAllocator::largest_free() const {
    Bytes largest = 0;
    for (const Pool& pool : pools_)
        for (const OrderedBlocks& free : pool.free) largest = std::max(largest, free.largest());
    return largest;
}

void CachingAllocator::free_sizes(std::vector<Bytes>& out) const {
    for (const Pool& pool : pools_)
        for (const OrderedBlocks& free : pool.free)
            for (auto p = free.begin(); p != free.end(); p = free.next(p)) out.push_back(free.size(p));
}

std::vector<SameCourse> CachingAllocator::same_course() const {
    return {split_limit_.same_course("max_split_size_mb"), split_rounding_.same_course("max_non_split_rounding_mb"),
        gc_limit_.same_course("garbage_collection_threshold")};
}

// An expandable segment shows as its maximal mapped ranges, as in PyTorch's snapshots.
MemoryPicture CachingAllocator::picture() const {
    std::vector<const Segment*> ordered;
    for (const Segment& segment : segments_)
        if (segment.first != kNone) ordered.push_back(&segment);
    std::sort(
        ordered.begin(), ordered.end(), [](const Segment* a, const Segment* b) { return a->address < b->address; });

    MemoryPicture picture;
    for (const Segment* segment : ordered) {
        bool open = false;  // the last drawn segment goes on
        for (BlockIndex b = segment->first; b != kNone; b = blocks_[b].next) {
            const Block& block = blocks_[b];
            if (block.mapped && !open)
                picture.segments.push_back({block.address, 0, {segment->stream},
                    static_cast<std::uint16_t>(segment->pool / 2), pools_[segment->pool].size_class == SizeClass::small,
                    segment->expandable(), static_cast<std::uint32_t>(picture.blocks.size()), 0});
            open = block.mapped;
            if (!block.mapped) continue;
            picture.blocks.push_back({block.address, block.size, block.requested, block.buffer, block.state});
            picture.segments.back().size += block.size;
            ++picture.segments.back().block_count;
        }
    }
    return picture;
}

// Blocks are reused in their own pool, on their own stream (section 4.1).
Barrier CachingAllocator::barrier(const SegmentPicture& segment, const Request& request) const {
    if (segment.pool != request.pool) return Barrier::other_pool;
    if (segment.stream != request.stream) return Barrier::other_stream;
    if (request.bytes <= 0) return Barrier::none;
    const bool small = request.bytes <= kRequestCeiling && config_.round_size(request.bytes) <= kSmallMax;
    return segment.small == small ? Barrier::none : Barrier::other_size_class;
}

// Pieces of one expandable segment are told by stream, pool and distance; the range is taken to begin with the first.
bool CachingAllocator::restore(const MemoryPicture& start) {
    std::uint32_t open = 0xffffffffu;  // the expandable segment that the last piece belonged to
    BlockIndex previous = kNone;
    const auto append = [&](std::uint32_t segment, Block block) {
        block.segment = segment;
        block.prev = previous;
        const BlockIndex index = new_block(block);
        (previous == kNone ? segments_[segment].first : blocks_[previous].next) = index;
        return previous = index;
    };
    const auto end_of = [&](BlockIndex block) {
        return blocks_[block].address + static_cast<Address>(blocks_[block].size);
    };
    const auto fill_to = [&](Address end) {  // unmapped
        if (const Address from = end_of(previous); from < end)
            insert_unmapped(append(
                open, {from, static_cast<Bytes>(end - from), 0, kNone, kNone, 0, 0, {}, BlockState::inactive, false}));
    };
    const auto close = [&] {
        if (open != 0xffffffffu) fill_to(segments_[open].address + static_cast<Address>(segments_[open].size));
        open = 0xffffffffu;
    };

    for (const SegmentPicture& drawn : start.segments) {
        const SizeClass size_class = drawn.small ? SizeClass::small : SizeClass::large;
        const std::uint16_t pool = pool_index(drawn.pool, size_class);
        const auto stream = static_cast<std::uint16_t>(drawn.stream.value);
        add_pools(drawn.pool);
        std::uint32_t segment = open;
        const bool continues = open != 0xffffffffu && drawn.expandable && segments_[open].pool == pool &&
                               segments_[open].stream == stream &&
                               drawn.address + static_cast<Address>(drawn.size) <=
                                   segments_[open].address + static_cast<Address>(segments_[open].size);
        if (continues) {
            fill_to(drawn.address);
        } else {
            close();
            previous = kNone;
            const Bytes page = !drawn.expandable ? 0 : drawn.small ? kSmallSegment : config_.large_segment_size;
            const Bytes total = device_.total_memory();
            const Bytes size = drawn.expandable ? std::max(round_up(total + total / 8, page), drawn.size) : drawn.size;
            segment = new_segment({drawn.address, size, page, 0, kNone, stream, pool});
            if (drawn.expandable) open = segment;
        }
        stats_.reserved_bytes.increase(size_class, drawn.size);
        if (!drawn.expandable) {
            stats_.segment.increase(size_class, 1);
            if (drawn.size >= config_.max_split_size) stats_.oversize_segments.increase(1);
        }
        for (std::uint32_t i = drawn.first_block; i < drawn.first_block + drawn.block_count; ++i) {
            const BlockPicture& block = start.blocks[i];
            const BlockIndex index = append(segment,
                {block.address, block.size, block.requested, kNone, kNone, 0, 0, block.buffer, block.state, true});
            if (block.state == BlockState::inactive) {
                insert_free(index);
                if (drawn.block_count > 1 && !drawn.expandable) {
                    stats_.inactive_split.increase(size_class, 1);
                    stats_.inactive_split_bytes.increase(size_class, block.size);
                }
                continue;
            }
            block_of(block.buffer) = index;
            stats_.active.increase(size_class, 1);
            stats_.active_bytes.increase(size_class, block.size);
            stats_.requested_bytes.increase(size_class, block.requested);
            if (block.state == BlockState::active_pending_free) {
                pending_.push_back(block.buffer);
                ++pending_incomplete_;
                continue;
            }
            stats_.allocation.increase(size_class, 1);
            stats_.allocated_bytes.increase(size_class, block.size);
            if (block.size >= config_.max_split_size) stats_.oversize_allocations.increase(1);
        }
        if (!drawn.expandable) previous = kNone;
    }
    close();
    return true;
}

}  // namespace fragsim::pytorch
