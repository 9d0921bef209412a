// Giving cached memory back to the device: garbage collection, oversize blocks, everything (sections 8 and 9).
#include <algorithm>

#include "lib/core/error.hpp"
#include "policies/pytorch/caching_allocator.hpp"

namespace fragsim::pytorch {

// Frees unsplit large blocks of the default pool that have not been used for long, until reserved memory is below the
// threshold. Expandable blocks count for the average age but are never freed.
void CachingAllocator::collect_garbage() {
    const Bytes reserved = stats_.reserved_bytes.all.current;
    const Pool& large = pools_[pool_index(0, SizeClass::large)];
    std::vector<BlockIndex> candidates;  // in set order
    double total_age = 0;
    const auto age = [&](BlockIndex b) { return static_cast<double>(large.lookups - blocks_[b].gc_base); };
    for (const OrderedBlocks& free : large.free)
        for (auto p = free.begin(); p != free.end(); p = free.next(p))
            if (!is_split(blocks_[free.block(p)])) {
                candidates.push_back(free.block(p));
                total_age += age(candidates.back());
            }

    Bytes reclaimed = 0;
    for (bool freed = true; freed && !candidates.empty() && gc_limit_.reached_by(reserved - reclaimed);) {
        const double average = total_age / static_cast<double>(candidates.size());
        std::vector<BlockIndex> kept;
        for (const BlockIndex block : candidates) {
            if (segment_of(blocks_[block]).expandable() || age(block) < average) {
                kept.push_back(block);
                continue;
            }
            reclaimed += blocks_[block].size;
            total_age -= age(block);
            release_segment(block);
        }
        freed = kept.size() < candidates.size();
        candidates = std::move(kept);
    }
}

// One cached block of at least the oversize limit and the request, or the largest oversize ones until they sum up to
// that (section 9.1). What was released stays released even if it is not enough. Oversize blocks are never split,
// except where the replay begins in mid-run with blocks from another setting: those stay.
bool CachingAllocator::release_oversize(const Wanted& wanted) {
    OrderedBlocks& free = pools_[wanted.pool].free_on(wanted.stream);
    split_limit_.reached_by(wanted.size);
    for (auto p = free.begin(); p != free.end(); p = free.next(p)) split_limit_.reached_by(free.size(p));
    if (config_.max_split_size == kUnlimited) return false;
    const Bytes need = std::max(wanted.size, config_.max_split_size);
    const auto releasable = [&](OrderedBlocks::Position p) {
        const Block& block = blocks_[free.block(p)];
        return !segment_of(block).expandable() && !is_split(block);
    };
    if (const auto enough = free.lower_bound(need); enough != free.end() && releasable(enough)) {
        release_segment(free.block(enough));
        return true;
    }
    std::vector<BlockIndex> largest_first;
    for (auto p = free.lower_bound(config_.max_split_size); p != free.end() && free.size(p) < need; p = free.next(p))
        if (releasable(p)) largest_first.push_back(free.block(p));
    Bytes released = 0;
    for (auto block = largest_first.rbegin(); block != largest_first.rend() && released < need; ++block) {
        released += blocks_[*block].size;
        release_segment(*block);
    }
    return released >= need;
}

// Waits for every pending free and gives back everything unused of the default pool and of freeable private pools.
void CachingAllocator::release_cached() {
    ++stats_.num_sync_all_streams;
    complete_pending({});
    release_unused(pool_index(0, SizeClass::large));
    release_unused(pool_index(0, SizeClass::small));
    for (std::uint16_t p = 1; p < freeable_.size(); ++p) {
        if (!freeable_[p]) continue;
        release_unused(pool_index(p, SizeClass::small));
        release_unused(pool_index(p, SizeClass::large));
    }
}

void CachingAllocator::release_pool(std::uint16_t pool) {
    add_pools(pool);
    freeable_[pool] = true;
}

void CachingAllocator::empty_pool(std::uint16_t pool) {
    add_pools(pool);
    ++stats_.num_sync_all_streams;
    complete_pending(pool);
    release_unused(pool_index(pool, SizeClass::small));
    release_unused(pool_index(pool, SizeClass::large));
}

// Unsplit segments are freed first, then whole pages of expandable ones are unmapped, each in set order.
void CachingAllocator::release_unused(std::uint16_t pool) {
    std::vector<BlockIndex> unsplit, expandable;
    for (const OrderedBlocks& free : pools_[pool].free)
        for (auto p = free.begin(); p != free.end(); p = free.next(p)) {
            const Block& block = blocks_[free.block(p)];
            if (segment_of(block).expandable())
                expandable.push_back(free.block(p));
            else if (!is_split(block))
                unsplit.push_back(free.block(p));
        }
    for (const BlockIndex block : unsplit) release_segment(block);
    for (const BlockIndex block : expandable) unmap_block(block);
}

void CachingAllocator::release_segment(BlockIndex index) {
    const Block block = blocks_[index];
    FRAGSIM_ASSERT(!is_split(block));
    const SizeClass size_class = class_of(block);
    erase_free(block);
    ++stats_.num_device_free;
    stats_.segment.decrease(size_class, 1);
    stats_.reserved_bytes.decrease(size_class, block.size);
    if (block.size >= config_.max_split_size) stats_.oversize_segments.decrease(1);
    segment_of(block).first = kNone;
    unused_segments_.push_back(block.segment);
    unused_blocks_.push_back(index);
    device_.free(block.address, block.size, {segment_of(block).stream});
}

// As if every stream had been waited for. `only_pool`: index of a memory pool.
void CachingAllocator::complete_pending(std::optional<std::uint16_t> only_pool) {
    std::vector<BufferId> waiting;
    for (const BufferId buffer : pending_) {
        const BlockIndex block = block_of(buffer);
        if (block == kNone) continue;
        if (only_pool && segment_of(blocks_[block]).pool / 2u != *only_pool)
            waiting.push_back(buffer);
        else
            retire(block);
    }
    pending_ = std::move(waiting);
    pending_incomplete_ = pending_.size();
}

}  // namespace fragsim::pytorch
