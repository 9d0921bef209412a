#include "policies/pytorch/caching_allocator.hpp"

#include <algorithm>

#include "lib/core/error.hpp"

namespace fragsim::pytorch {

CachingAllocator::CachingAllocator(const NativeConfig& config, const PolicyContext& context)
    : config_(config), device_(context.device) {
    if (context.capacity) {
        // From 2.13 on the fraction is rounded to the nearest byte, before it was cut.
        const double part = config.per_process_memory_fraction * static_cast<double>(*context.capacity);
        const auto fraction_bytes = static_cast<Bytes>(config.version >= TorchVersion{2, 13} ? part + 0.5 : part);
        limit_ = config.per_process_memory_fraction < 1 ? fraction_bytes : *context.capacity;
        if (config.throw_on_cudamalloc_oom) rejects_ = static_cast<Bytes>(part);
    }
    gc_on_ = limit_ && config.garbage_collection_threshold > 0;
    serial_ties_ = config.serial_tie_break();
}

// --- getting a block ------------------------------------------------------------------------------------------------

std::optional<Placement> CachingAllocator::allocate(BufferId buffer, Bytes requested, StreamId stream_id) {
    const auto stream = static_cast<std::uint16_t>(stream_id.value);
    if (requested > kRequestCeiling) {
        ++stats_.num_ooms;
        return {};
    }
    const Bytes size = config_.round_size(requested);
    const SizeClass size_class = size <= kSmallMax ? SizeClass::small : SizeClass::large;

    BlockIndex taken = take_cached(size_class, size, stream);
    if (taken == kNone) taken = grow(size_class, size, stream);
    if (taken == kNone) {
        ++(rejected_ ? stats_.num_oom_rejections : stats_.num_ooms);
        return {};
    }

    const bool was_split = is_split(blocks_[taken]);
    if (should_split(blocks_[taken], size)) {
        taken = split(taken, size);
        if (was_split) {
            stats_.inactive_split_bytes.decrease(size_class, size);
        } else {
            stats_.inactive_split.increase(size_class, 1);
            stats_.inactive_split_bytes.increase(size_class, blocks_[blocks_[taken].next].size);
        }
    } else if (was_split) {
        stats_.inactive_split.decrease(size_class, 1);
        stats_.inactive_split_bytes.decrease(size_class, blocks_[taken].size);
    }

    Block& block = blocks_[taken];
    block.state = BlockState::active_allocated;
    block.requested = requested;
    block.buffer = buffer;
    block_of(buffer) = taken;
    stats_.allocation.increase(size_class, 1);
    stats_.allocated_bytes.increase(size_class, block.size);
    stats_.active.increase(size_class, 1);
    stats_.active_bytes.increase(size_class, block.size);
    stats_.requested_bytes.increase(size_class, requested);
    if (block.size >= config_.max_split_size) stats_.oversize_allocations.increase(1);
    return Placement{block.address, block.size};
}

// Only the best fit is looked at: if the rules for oversize blocks refuse it, the next one is not tried (section 6.1).
CachingAllocator::BlockIndex CachingAllocator::take_cached(SizeClass size_class, Bytes size, std::uint16_t stream) {
    if (gc_on_) ++pool(size_class).lookups;
    OrderedBlocks& free = free_blocks(size_class, stream);
    const OrderedBlocks::Position best = free.lower_bound(size);
    if (best == free.end()) return kNone;
    const BlockIndex found = free.block(best);
    const Bytes found_size = blocks_[found].size;
    if (size < config_.max_split_size) {
        if (found_size >= config_.max_split_size) return kNone;
    } else if (found_size >= size + config_.max_non_split_rounding) {
        return kNone;
    }
    free.erase(best);
    return found;
}

// The device is asked, and asked again after giving back first what is oversize, then everything cached (section 5).
// The cache itself is not searched again, even if completed frees made a block that fits.
CachingAllocator::BlockIndex CachingAllocator::grow(SizeClass size_class, Bytes size, std::uint16_t stream) {
    rejected_ = false;
    if (gc_on_) collect_garbage();
    BlockIndex block = new_segment(size_class, size, stream);
    if (block == kNone && !rejected_ && config_.max_split_size != kUnlimited && release_oversize(size_class, size, stream))
        block = new_segment(size_class, size, stream);
    if (block == kNone && !rejected_) {
        release_cached();
        ++stats_.num_alloc_retries;
        block = new_segment(size_class, size, stream);
    }
    return block;
}

CachingAllocator::BlockIndex CachingAllocator::new_segment(SizeClass size_class, Bytes size, std::uint16_t stream) {
    const Bytes bytes = config_.segment_size(size);
    const Bytes reserved = stats_.reserved_bytes.all.current;
    if (limit_ && bytes > *limit_ - reserved) return kNone;
    if (rejects_ && bytes > *rejects_ - reserved) {
        rejected_ = true;
        return kNone;
    }
    const std::optional<Address> address = device_.malloc(bytes, {stream});
    if (!address) return kNone;

    const BlockIndex index = new_block();
    blocks_[index] = {*address, bytes, 0, kNone, kNone, add_segment(*address, bytes, index), 0, {}, stream, size_class, BlockState::inactive};
    ++stats_.num_device_alloc;
    stats_.segment.increase(size_class, 1);
    stats_.reserved_bytes.increase(size_class, bytes);
    if (bytes >= config_.max_split_size) stats_.oversize_segments.increase(1);
    return index;
}

bool CachingAllocator::should_split(const Block& block, Bytes size) const {
    const Bytes rest = block.size - size;
    if (block.size_class == SizeClass::small) return rest >= kMinBlock;
    return size < config_.max_split_size && rest > kSmallMax;
}

// Cuts the front off a free block that is in no free set; the rest goes into it. Returns the front.
CachingAllocator::BlockIndex CachingAllocator::split(BlockIndex whole, Bytes size) {
    const BlockIndex front = new_block();
    ++stats_.num_splits;
    Block& rest = blocks_[whole];
    blocks_[front] = rest;
    blocks_[front].size = size;
    blocks_[front].next = whole;
    if (rest.prev != kNone)
        blocks_[rest.prev].next = front;
    else
        segments_[rest.segment].first = front;
    rest.prev = front;
    rest.address += static_cast<Address>(size);
    rest.size -= size;
    insert_free(whole);
    return front;
}

// --- giving memory back ---------------------------------------------------------------------------------------------

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
    stats_.allocation.decrease(block.size_class, 1);
    stats_.allocated_bytes.decrease(block.size_class, block.size);
    if (block.size >= config_.max_split_size) stats_.oversize_allocations.decrease(1);
}

void CachingAllocator::retire(BlockIndex index) {
    Block& block = blocks_[index];
    const SizeClass size_class = block.size_class;
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
    stats_.inactive_split.change(size_class, split_blocks);
    stats_.inactive_split_bytes.change(size_class, split_bytes);
    insert_free(index);
}

// Joins a free neighbour into a free block that is in no free set. Returns the bytes gained; 0: the neighbour is in use.
Bytes CachingAllocator::merge(BlockIndex into_index, BlockIndex neighbour_index) {
    if (neighbour_index == kNone || blocks_[neighbour_index].state != BlockState::inactive) return 0;
    Block& into = blocks_[into_index];
    const Block& neighbour = blocks_[neighbour_index];
    erase_free(neighbour);
    if (into.prev == neighbour_index) {
        into.address = neighbour.address;
        into.prev = neighbour.prev;
        if (into.prev != kNone)
            blocks_[into.prev].next = into_index;
        else
            segments_[into.segment].first = into_index;
    } else {
        into.next = neighbour.next;
        if (into.next != kNone) blocks_[into.next].prev = into_index;
    }
    into.size += neighbour.size;
    unused_blocks_.push_back(neighbour_index);
    ++stats_.num_coalesces;
    return neighbour.size;
}

// Frees unsplit large blocks that have not been used for long, until reserved memory is below the threshold (section 8).
void CachingAllocator::collect_garbage() {
    const auto threshold = static_cast<Bytes>(config_.garbage_collection_threshold * static_cast<double>(*limit_));
    const Bytes target = stats_.reserved_bytes.all.current - threshold;
    if (target <= 0) return;

    const Pool& large = pool(SizeClass::large);
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
    for (bool freed = true; reclaimed < target && freed && !candidates.empty();) {
        const double average = total_age / static_cast<double>(candidates.size());
        std::vector<BlockIndex> younger;
        for (const BlockIndex block : candidates) {
            if (age(block) < average) {
                younger.push_back(block);
                continue;
            }
            reclaimed += blocks_[block].size;
            total_age -= age(block);
            release_segment(block);
        }
        freed = younger.size() < candidates.size();
        candidates = std::move(younger);
    }
}

// One cached block of at least the oversize limit and the request, or the largest oversize ones until they sum up to
// that (section 9.1). What was released stays released even if it is not enough.
bool CachingAllocator::release_oversize(SizeClass size_class, Bytes size, std::uint16_t stream) {
    const Bytes need = std::max(size, config_.max_split_size);
    OrderedBlocks& free = free_blocks(size_class, stream);
    if (const auto enough = free.lower_bound(need); enough != free.end()) {
        release_segment(free.block(enough));
        return true;
    }
    Bytes released = 0;
    while (released < need && !free.empty() && free.largest() >= config_.max_split_size) {
        released += free.largest();
        release_segment(free.block(free.last()));
    }
    return released >= need;
}

// Waits for every pending free and gives back all unsplit cached blocks (section 9.2).
void CachingAllocator::release_cached() {
    ++stats_.num_sync_all_streams;
    complete_pending();
    release_unsplit(SizeClass::large);
    release_unsplit(SizeClass::small);
}

void CachingAllocator::release_unsplit(SizeClass size_class) {
    for (const OrderedBlocks& free : pool(size_class).free) {
        std::vector<BlockIndex> unsplit;
        for (auto p = free.begin(); p != free.end(); p = free.next(p))
            if (!is_split(blocks_[free.block(p)])) unsplit.push_back(free.block(p));
        for (const BlockIndex block : unsplit) release_segment(block);
    }
}

void CachingAllocator::release_segment(BlockIndex index) {
    const Block block = blocks_[index];
    erase_free(block);
    ++stats_.num_device_free;
    stats_.segment.decrease(block.size_class, 1);
    stats_.reserved_bytes.decrease(block.size_class, block.size);
    if (block.size >= config_.max_split_size) stats_.oversize_segments.decrease(1);
    segments_[block.segment].first = kNone;
    unused_segments_.push_back(block.segment);
    unused_blocks_.push_back(index);
    device_.free(block.address, block.size, {block.stream});
}

void CachingAllocator::complete_pending() {
    for (const BufferId buffer : pending_)
        if (const BlockIndex block = block_of(buffer); block != kNone) retire(block);
    pending_.clear();
    pending_incomplete_ = 0;
}

// --- bookkeeping ----------------------------------------------------------------------------------------------------

CachingAllocator::BlockIndex CachingAllocator::new_block() {
    if (!unused_blocks_.empty()) {
        const BlockIndex index = unused_blocks_.back();
        unused_blocks_.pop_back();
        return index;
    }
    blocks_.emplace_back();
    return static_cast<BlockIndex>(blocks_.size() - 1);
}

std::uint32_t CachingAllocator::add_segment(Address address, Bytes size, BlockIndex first) {
    const Segment segment{address, size, next_serial_++, first};
    if (!unused_segments_.empty()) {
        const std::uint32_t slot = unused_segments_.back();
        unused_segments_.pop_back();
        segments_[slot] = segment;
        return slot;
    }
    segments_.push_back(segment);
    return static_cast<std::uint32_t>(segments_.size() - 1);
}

void CachingAllocator::grow_buffers(BufferId buffer) {
    block_of_buffer_.resize(std::max<std::size_t>(buffer.value + 1, 2 * block_of_buffer_.size()), kNone);
}

OrderedBlocks::Key CachingAllocator::key(const Block& block) const {
    if (!serial_ties_) return {block.size, block.address};
    const Segment& segment = segments_[block.segment];
    return {block.size, std::uint64_t{segment.serial} << 32 | (block.address - segment.address) / kMinBlock};
}

void CachingAllocator::insert_free(BlockIndex index) {
    Block& block = blocks_[index];
    block.gc_base = pool(block.size_class).lookups;
    free_blocks(block.size_class, block.stream).insert(key(block), index);
}

void CachingAllocator::erase_free(const Block& block) { free_blocks(block.size_class, block.stream).erase(key(block)); }

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

MemoryPicture CachingAllocator::picture() const {
    std::vector<const Segment*> ordered;
    for (const Segment& segment : segments_)
        if (segment.first != kNone) ordered.push_back(&segment);
    std::sort(ordered.begin(), ordered.end(), [](const Segment* a, const Segment* b) { return a->address < b->address; });

    MemoryPicture picture;
    for (const Segment* segment : ordered) {
        const Block& first = blocks_[segment->first];
        const auto first_block = static_cast<std::uint32_t>(picture.blocks.size());
        for (BlockIndex b = segment->first; b != kNone; b = blocks_[b].next)
            picture.blocks.push_back({blocks_[b].address, blocks_[b].size, blocks_[b].requested, blocks_[b].buffer, blocks_[b].state});
        picture.segments.push_back({segment->address, segment->size, {first.stream}, 0, first.size_class == SizeClass::small, false,
            first_block, static_cast<std::uint32_t>(picture.blocks.size()) - first_block});
    }
    return picture;
}

bool CachingAllocator::restore(const MemoryPicture& start) {
    for (const SegmentPicture& segment : start.segments)
        if (segment.expandable || segment.pool != 0) return false;
    for (const SegmentPicture& segment : start.segments) {
        const SizeClass size_class = segment.small ? SizeClass::small : SizeClass::large;
        const auto stream = static_cast<std::uint16_t>(segment.stream.value);
        const std::uint32_t slot = add_segment(segment.address, segment.size, kNone);
        stats_.segment.increase(size_class, 1);
        stats_.reserved_bytes.increase(size_class, segment.size);
        if (segment.size >= config_.max_split_size) stats_.oversize_segments.increase(1);
        BlockIndex previous = kNone;
        for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
            const BlockPicture& drawn = start.blocks[i];
            const BlockIndex index = new_block();
            blocks_[index] = {drawn.address, drawn.size, drawn.requested, previous, kNone, slot, 0, drawn.buffer, stream, size_class, drawn.state};
            (previous == kNone ? segments_[slot].first : blocks_[previous].next) = index;
            previous = index;
            if (drawn.state == BlockState::inactive) {
                insert_free(index);
                if (segment.block_count > 1) {
                    stats_.inactive_split.increase(size_class, 1);
                    stats_.inactive_split_bytes.increase(size_class, drawn.size);
                }
                continue;
            }
            block_of(drawn.buffer) = index;
            stats_.active.increase(size_class, 1);
            stats_.active_bytes.increase(size_class, drawn.size);
            stats_.requested_bytes.increase(size_class, drawn.requested);
            if (drawn.state == BlockState::active_pending_free) {
                pending_.push_back(drawn.buffer);
                ++pending_incomplete_;
                continue;
            }
            stats_.allocation.increase(size_class, 1);
            stats_.allocated_bytes.increase(size_class, drawn.size);
            if (drawn.size >= config_.max_split_size) stats_.oversize_allocations.increase(1);
        }
    }
    return true;
}

}  // namespace fragsim::pytorch
