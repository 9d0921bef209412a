// Allocating and freeing: the cached part of every request, and what is asked of the device when the cache has nothing.
#include "policies/pytorch/caching_allocator.hpp"

#include <algorithm>

namespace fragsim::pytorch {

CachingAllocator::CachingAllocator(const NativeConfig& config, const PolicyContext& context)
    : config_(config), device_(context.device), pool_names_(context.pools), limit_(config.memory_limit(context.limits)),
      split_limit_(config.max_split_size), split_rounding_(config.max_non_split_rounding), gc_limit_(kUnlimited) {
    if (context.limits.capacity && config.throw_on_cudamalloc_oom)  // reached only without a limit
        rejects_ = static_cast<Bytes>(config.per_process_memory_fraction * static_cast<double>(*context.limits.capacity));
    gc_on_ = limit_ && config.garbage_collection_threshold > 0;
    if (gc_on_) {
        const double part = config.garbage_collection_threshold * static_cast<double>(*limit_);
        gc_limit_ = Threshold(static_cast<Bytes>(part) + 1);
    }
    serial_ties_ = config.serial_tie_break();
    add_pools(0);
}

// --- getting a block ------------------------------------------------------------------------------------------------

std::optional<Placement> CachingAllocator::allocate(BufferId buffer, const Request& request) {
    if (request.bytes > kRequestCeiling) {
        ++stats_.num_ooms;
        return {};
    }
    const Bytes size = config_.round_size(request.bytes);
    const SizeClass size_class = size <= kSmallMax ? SizeClass::small : SizeClass::large;
    const Wanted wanted{size, pool_index(request.pool, size_class), static_cast<std::uint16_t>(request.stream.value),
        config_.captures(request.pool, pool_names_)};
    if (wanted.pool >= pools_.size()) add_pools(request.pool);

    BlockIndex taken = take_cached(wanted, config_.expandable_segments);
    if (taken == kNone) taken = grow(wanted);
    if (taken == kNone) {
        ++(rejected_ ? stats_.num_oom_rejections : stats_.num_ooms);
        return {};
    }
    return hand_out(taken, buffer, request, size);
}

std::optional<Placement> CachingAllocator::hand_out(
    BlockIndex taken, BufferId buffer, const Request& request, Bytes size) {
    const SizeClass size_class = class_of(blocks_[taken]);
    const bool was_split = is_split(blocks_[taken]), expandable = segment_of(blocks_[taken]).expandable();
    if (should_split(blocks_[taken], size, config_.expandable_segments)) {
        taken = split(taken, size);
        if (expandable) {
            // inactive_split leaves expandable segments out
        } else if (was_split) {
            stats_.inactive_split_bytes.decrease(size_class, size);
        } else {
            stats_.inactive_split.increase(size_class, 1);
            stats_.inactive_split_bytes.increase(size_class, blocks_[blocks_[taken].next].size);
        }
    } else if (was_split && !expandable) {
        stats_.inactive_split.decrease(size_class, 1);
        stats_.inactive_split_bytes.decrease(size_class, blocks_[taken].size);
    }

    Block& block = blocks_[taken];
    block.state = BlockState::active_allocated;
    block.requested = request.bytes;
    block.buffer = buffer;
    block_of(buffer) = taken;
    stats_.allocation.increase(size_class, 1);
    stats_.allocated_bytes.increase(size_class, block.size);
    stats_.active.increase(size_class, 1);
    stats_.active_bytes.increase(size_class, block.size);
    stats_.requested_bytes.increase(size_class, request.bytes);
    if (block.size >= config_.max_split_size) stats_.oversize_allocations.increase(1);
    return Placement{block.address, block.size};
}

// Only the best fit is looked at: if the rules for oversize blocks refuse it, the next one is not tried (section 6.1).
CachingAllocator::BlockIndex CachingAllocator::take_cached(const Wanted& wanted, bool expandable) {
    Pool& pool = pools_[wanted.pool];
    if (gc_on_) ++pool.lookups;
    OrderedBlocks& free = pool.free_on(wanted.stream);
    OrderedBlocks::Position best = free.lower_bound(wanted.size);
    if (best == free.end()) return kNone;
    if (segment_of(blocks_[free.block(best)]).expandable()) {
        best = prefer_holes(free, best, expandable);
        if (best == free.end()) return kNone;
    }
    const BlockIndex found = free.block(best);
    const Bytes found_size = blocks_[found].size;
    if (!split_limit_.reached_by(wanted.size)) {
        if (split_limit_.reached_by(found_size)) return kNone;
    } else if (split_rounding_.reached_by(found_size - wanted.size)) {
        return kNone;
    }
    free.erase(best);
    return found;
}

// The device is asked, and asked again after giving back first what is oversize, then everything cached (section 5).
// The cache itself is not searched again, even if completed frees made a block that fits.
CachingAllocator::BlockIndex CachingAllocator::grow(const Wanted& wanted) {
    rejected_ = false;
    if (limit_ && gc_limit_.reached_by(stats_.reserved_bytes.all.current)) collect_garbage();
    BlockIndex block = new_memory(wanted);
    if (block != kNone || rejected_) return block;
    if (block = borrow(wanted); block != kNone) return block;
    if (release_oversize(wanted)) block = new_memory(wanted);
    if (block == kNone && !rejected_ && !wanted.capturing) {
        release_cached();
        ++stats_.num_alloc_retries;
        block = new_memory(wanted);
    }
    return block;
}

// A block of a pool that lends when there is no memory; no memory is got for it (section 10.4).
CachingAllocator::BlockIndex CachingAllocator::borrow(const Wanted& wanted) {
    if (wanted.pool > 1) return kNone;
    for (std::uint16_t lender = 1; 2u * lender < pools_.size(); ++lender) {
        if (lender >= pool_names_.size() || !config_.lends_on_oom(pool_names_[lender])) continue;
        Wanted there = wanted;
        there.pool = static_cast<std::uint16_t>(2 * lender + wanted.pool);
        if (const BlockIndex block = take_cached(there, false); block != kNone) return block;
    }
    return kNone;
}

CachingAllocator::BlockIndex CachingAllocator::new_memory(const Wanted& wanted) {
    const Bytes bytes = config_.segment_size(wanted.size);
    const Bytes reserved = stats_.reserved_bytes.all.current;
    if (limit_ && bytes > *limit_ - reserved) return kNone;
    if (rejects_ && bytes > *rejects_ - reserved) {
        rejected_ = true;
        return kNone;
    }
    if (config_.expandable_segments && config_.expandable_in(wanted.pool / 2u)) return map_more(wanted);
    const std::optional<Address> address = device_.malloc(bytes, {wanted.stream});
    if (!address) return kNone;

    const SizeClass size_class = pools_[wanted.pool].size_class;
    ++stats_.num_device_alloc;
    stats_.segment.increase(size_class, 1);
    stats_.reserved_bytes.increase(size_class, bytes);
    if (bytes >= config_.max_split_size) stats_.oversize_segments.increase(1);
    const std::uint32_t segment = new_segment({*address, bytes, 0, 0, kNone, wanted.stream, wanted.pool});
    const BlockIndex block = new_block({*address, bytes, 0, kNone, kNone, segment, 0, {}, BlockState::inactive, true});
    return segments_[segment].first = block;
}

bool CachingAllocator::should_split(const Block& block, Bytes size, bool expandable) {
    const Bytes rest = block.size - size;
    const std::uint16_t pool = segment_of(block).pool;
    if (pool > 1 && pool / 2u < pool_names_.size() && config_.never_splits(pool_names_[pool / 2u])) return false;
    if (pools_[pool].size_class == SizeClass::small || expandable) return rest >= kMinBlock;
    return !split_limit_.reached_by(size) && rest > kSmallMax;
}

// Cuts the front off a free block that is in no free set; the rest goes into it. Returns the front.
CachingAllocator::BlockIndex CachingAllocator::split(BlockIndex block, Bytes size) {
    ++stats_.num_splits;
    const BlockIndex front = cut_front(block, size);
    insert_free(block);
    return front;
}

// --- freeing --------------------------------------------------------------------------------------------------------

void CachingAllocator::free(BufferId buffer) {
    const BlockIndex block = block_of(buffer);
    end_use(block);
    retire(block);
}

void CachingAllocator::free_requested(BufferId buffer) {
    const BlockIndex block = block_of(buffer);
    end_use(block);
    blocks_[block].state = BlockState::active_pending_free;
    if (pending_.size() > 2 * pending_incomplete_ + 64)
        std::erase_if(pending_, [&](BufferId b) { return block_of(b) == kNone; });
    pending_.push_back(buffer);
    ++pending_incomplete_;
}

void CachingAllocator::free_completed(BufferId buffer) {
    const BlockIndex block = block_of(buffer);
    if (block == kNone) return;  // completed when the allocator waited for all streams
    --pending_incomplete_;
    retire(block);
}

void CachingAllocator::end_use(BlockIndex index) {
    const Block& block = blocks_[index];
    const SizeClass size_class = class_of(block);
    stats_.allocation.decrease(size_class, 1);
    stats_.allocated_bytes.decrease(size_class, block.size);
    if (block.size >= config_.max_split_size) stats_.oversize_allocations.decrease(1);
}

void CachingAllocator::retire(BlockIndex index) {
    Block& block = blocks_[index];
    const SizeClass size_class = class_of(block);
    block_of(block.buffer) = kNone;
    block.buffer = {};
    block.state = BlockState::inactive;
    stats_.active.decrease(size_class, 1);
    stats_.active_bytes.decrease(size_class, block.size);
    stats_.requested_bytes.decrease(size_class, block.requested);

    Bytes split_blocks = 0, split_bytes = 0;
    for (const BlockIndex neighbour : {block.prev, block.next})
        if (const Bytes joined = merge(index, neighbour)) {
            split_blocks -= 1;
            split_bytes -= joined;
        }
    if (is_split(block)) {
        split_blocks += 1;
        split_bytes += block.size;
    }
    if (!segment_of(block).expandable()) {
        stats_.inactive_split.change(size_class, split_blocks);
        stats_.inactive_split_bytes.change(size_class, split_bytes);
    }
    insert_free(index);
}

// Joins a free neighbour that is mapped or unmapped as the block is. The block is in no set; the neighbour leaves its
// own. Returns the bytes gained; 0: the neighbour cannot join.
Bytes CachingAllocator::merge(BlockIndex into_index, BlockIndex neighbour_index) {
    if (!usable(neighbour_index) || blocks_[neighbour_index].mapped != blocks_[into_index].mapped) return 0;
    Block& into = blocks_[into_index];
    const Block& neighbour = blocks_[neighbour_index];
    if (into.mapped) {
        erase_free(neighbour);
        ++stats_.num_coalesces;
    } else {
        erase_unmapped(neighbour_index);
    }
    if (into.prev == neighbour_index) {
        into.address = neighbour.address;
        into.prev = neighbour.prev;
        (into.prev != kNone ? blocks_[into.prev].next : segment_of(into).first) = into_index;
    } else {
        into.next = neighbour.next;
        if (into.next != kNone) blocks_[into.next].prev = into_index;
    }
    into.size += neighbour.size;
    unused_blocks_.push_back(neighbour_index);
    return neighbour.size;
}

// --- bookkeeping ----------------------------------------------------------------------------------------------------

CachingAllocator::BlockIndex CachingAllocator::new_block(const Block& block) {
    if (unused_blocks_.empty()) {
        blocks_.push_back(block);
        return static_cast<BlockIndex>(blocks_.size() - 1);
    }
    const BlockIndex index = unused_blocks_.back();
    unused_blocks_.pop_back();
    blocks_[index] = block;
    return index;
}

// Gives the segment its age.
std::uint32_t CachingAllocator::new_segment(const Segment& segment) {
    std::uint32_t slot = static_cast<std::uint32_t>(segments_.size());
    if (unused_segments_.empty()) {
        segments_.push_back(segment);
    } else {
        slot = unused_segments_.back();
        unused_segments_.pop_back();
        segments_[slot] = segment;
    }
    segments_[slot].serial = next_serial_++;
    return slot;
}

void CachingAllocator::add_pools(std::uint16_t memory_pool) {
    while (pools_.size() < 2u * memory_pool + 2)
        pools_.push_back({pools_.size() % 2 == 0 ? SizeClass::small : SizeClass::large, {}, {}, 0});
    if (freeable_.size() <= memory_pool) freeable_.resize(memory_pool + 1u);
}

void CachingAllocator::grow_buffers(BufferId buffer) {
    block_of_buffer_.resize(std::max<std::size_t>(buffer.value + 1, 2 * block_of_buffer_.size()), kNone);
}

OrderedBlocks::Key CachingAllocator::key(const Block& block) const {
    if (!serial_ties_) return {block.size, block.address};
    const Segment& segment = segment_of(block);
    return {block.size, std::uint64_t{segment.serial} << 32 | (block.address - segment.address) / kMinBlock};
}

void CachingAllocator::insert_free(BlockIndex index) {
    Block& block = blocks_[index];
    const Segment& segment = segment_of(block);
    block.gc_base = pools_[segment.pool].lookups;
    pools_[segment.pool].free_on(segment.stream).insert(key(block), index);
}

void CachingAllocator::erase_free(const Block& block) {
    const Segment& segment = segment_of(block);
    pools_[segment.pool].free_on(segment.stream).erase(key(block));
}

// The front of a block becomes a block of its own, in no set and otherwise like the block, which keeps the rest.
CachingAllocator::BlockIndex CachingAllocator::cut_front(BlockIndex whole, Bytes size) {
    const BlockIndex front = new_block(blocks_[whole]);
    Block& rest = blocks_[whole];
    blocks_[front].size = size;
    blocks_[front].next = whole;
    (rest.prev != kNone ? blocks_[rest.prev].next : segment_of(rest).first) = front;
    rest.prev = front;
    rest.address += static_cast<Address>(size);
    rest.size -= size;
    return front;
}

}  // namespace fragsim::pytorch
