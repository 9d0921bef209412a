// Expandable segments: a reserved range larger than the card that memory is mapped into page by page, at its tail or in
// its holes, so that a segment can grow instead of leaving remainders (section 14).
//
//   [in use|free|in use|....unmapped....|in use|free|..................unmapped..................]
//           ^ served first               ^ a hole: mapped again when free + hole suffice  ^ the tail: grows
#include <algorithm>

#include "policies/pytorch/caching_allocator.hpp"

namespace fragsim::pytorch {

// The best fit is an expandable block. With the option on, a block before the unmapped tail counts as large as both, so
// that smaller holes elsewhere are filled first; the walk ends at the first that is not smaller. With the option off,
// expandable blocks are passed over.
OrderedBlocks::Position CachingAllocator::prefer_holes(
    const OrderedBlocks& free, OrderedBlocks::Position best, bool expandable) const {
    const auto block_at = [&](OrderedBlocks::Position p) -> const Block& { return blocks_[free.block(p)]; };
    const auto is_expandable = [&](OrderedBlocks::Position p) { return segment_of(block_at(p)).expandable(); };
    if (!expandable) {
        while (best != free.end() && is_expandable(best)) best = free.next(best);
        return best;
    }
    const auto span = [&](OrderedBlocks::Position p) {
        const Block& block = block_at(p);
        return block.size + (block.next != kNone && !blocks_[block.next].mapped ? blocks_[block.next].size : 0);
    };
    for (auto next = free.next(best); is_expandable(best) && next != free.end() && span(next) < span(best);
         next = free.next(best))
        best = next;
    return best;
}

// Neither in use nor waiting for another stream.
bool CachingAllocator::usable(BlockIndex block) const {
    return block != kNone && blocks_[block].state == BlockState::inactive;
}

// A mapped free block of at least the wanted size, in no set; none: out of memory. Pages mapped before a failure stay.
CachingAllocator::BlockIndex CachingAllocator::map_more(const Wanted& wanted) {
    BlockIndex block = place_to_map(wanted);
    if (block == kNone) return kNone;
    if (!blocks_[block].mapped) block = map_block(block, std::min(blocks_[block].size, wanted.size));
    while (block != kNone && blocks_[block].size < wanted.size) {
        const BlockIndex unmapped = blocks_[block].next;
        block = map_block(unmapped, std::min(wanted.size - blocks_[block].size, blocks_[unmapped].size));
    }
    if (block != kNone) erase_free(blocks_[block]);
    return block;
}

// The first block from which on free and unmapped memory together suffice, by address.
CachingAllocator::BlockIndex CachingAllocator::place_to_map(const Wanted& wanted) {
    Pool& pool = pools_[wanted.pool];
    if (wanted.stream >= pool.unmapped.size()) pool.unmapped.resize(wanted.stream + 1u);
    for (const BlockIndex unmapped : pool.unmapped[wanted.stream]) {
        const BlockIndex start = usable(blocks_[unmapped].prev) ? blocks_[unmapped].prev : unmapped;
        Bytes sum = 0;
        for (BlockIndex b = start; usable(b); b = blocks_[b].next)
            if ((sum += blocks_[b].size) >= wanted.size) return start;
    }
    return reserve_segment(wanted);
}

CachingAllocator::BlockIndex CachingAllocator::reserve_segment(const Wanted& wanted) {
    const Bytes page = pools_[wanted.pool].size_class == SizeClass::small ? kSmallSegment : config_.large_segment_size;
    const Bytes total = device_.total_memory();
    const Bytes size = round_up(total + total / 8, page);
    if (size < wanted.size) return kNone;  // before ~2.14 an internal error of PyTorch
    const Address address = device_.reserve(size, {wanted.stream});
    const std::uint32_t segment = new_segment({address, size, page, 0, kNone, wanted.stream, wanted.pool});
    const BlockIndex block = new_block({address, size, 0, kNone, kNone, segment, 0, {}, BlockState::inactive, false});
    segments_[segment].first = block;
    insert_unmapped(block);
    return block;
}

// Maps whole pages for the first `bytes` of an unmapped block, which then joins its free neighbours. Returns the joined
// block, in its free set; none: out of memory, nothing changed.
CachingAllocator::BlockIndex CachingAllocator::map_block(BlockIndex index, Bytes bytes) {
    const Segment segment = segment_of(blocks_[index]);
    const Bytes mapped = round_up(bytes, segment.page);
    if (!device_.map(blocks_[index].address, mapped, segment.page, {segment.stream})) return kNone;
    erase_unmapped(index);
    if (mapped < blocks_[index].size) {
        const BlockIndex front = cut_front(index, mapped);
        insert_unmapped(index);
        index = front;
    }
    blocks_[index].mapped = true;
    ++stats_.num_device_alloc;
    stats_.reserved_bytes.increase(pools_[segment.pool].size_class, mapped);
    for (const BlockIndex neighbour : {blocks_[index].prev, blocks_[index].next}) merge(index, neighbour);
    insert_free(index);
    return index;
}

// Unmaps the whole pages inside a free block. What lies before and behind them stays, as free blocks of its own. A
// segment with nothing mapped is given up.
void CachingAllocator::unmap_block(BlockIndex index) {
    const std::uint32_t segment_index = blocks_[index].segment;
    const Segment segment = segments_[segment_index];
    const Bytes offset = static_cast<Bytes>(blocks_[index].address - segment.address);
    const Bytes first = round_up(offset, segment.page);
    const Bytes end = (offset + blocks_[index].size) / segment.page * segment.page;
    if (first >= end) return;

    erase_free(blocks_[index]);
    if (first > offset) insert_free(cut_front(index, first - offset));
    if (const Bytes pages = end - first; pages < blocks_[index].size) {
        const BlockIndex middle = cut_front(index, pages);
        insert_free(index);
        index = middle;
    }
    blocks_[index].mapped = false;
    ++stats_.num_device_free;
    stats_.reserved_bytes.decrease(pools_[segment.pool].size_class, end - first);
    device_.unmap(segment.address + static_cast<Address>(first), end - first, segment.page, {segment.stream});
    for (const BlockIndex neighbour : {blocks_[index].prev, blocks_[index].next}) merge(index, neighbour);
    if (is_split(blocks_[index])) {
        insert_unmapped(index);
        return;
    }
    segments_[segment_index].first = kNone;
    unused_segments_.push_back(segment_index);
    unused_blocks_.push_back(index);
    device_.unreserve(segment.address, segment.size, {segment.stream});
}

void CachingAllocator::insert_unmapped(BlockIndex index) {
    const Segment& segment = segment_of(blocks_[index]);
    auto& by_stream = pools_[segment.pool].unmapped;
    if (segment.stream >= by_stream.size()) by_stream.resize(segment.stream + 1u);
    auto& unmapped = by_stream[segment.stream];
    unmapped.insert(std::lower_bound(unmapped.begin(), unmapped.end(), blocks_[index].address,
                        [&](BlockIndex b, Address address) { return blocks_[b].address < address; }),
        index);
}

void CachingAllocator::erase_unmapped(BlockIndex index) {
    const Segment& segment = segment_of(blocks_[index]);
    std::erase(pools_[segment.pool].unmapped[segment.stream], index);
}

}  // namespace fragsim::pytorch
