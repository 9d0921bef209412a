#include "lib/policy/block_policy.hpp"

#include <algorithm>

#include "lib/core/error.hpp"

namespace fragsim {

std::optional<AccountingPolicy::Place> BlockPolicy::place(const Request& request) {
    const BlockIndex taken = take(request);
    if (taken == kNone) {
        refresh_split();
        return {};
    }
    begin_use(taken);
    refresh_split();
    return Place{blocks_[taken].address, blocks_[taken].size, taken};
}

void BlockPolicy::give_back(const Place& place, StreamId stream) {
    end_use(place.handle);
    retire(place.handle, stream);
    refresh_split();
}

void BlockPolicy::begin_use(BlockIndex index) {
    Block& block = blocks_[index];
    block.used = true;
    Segment& segment = segments_[block.segment];
    ++segment.used_blocks;
    segment.used_bytes += block.size;
    touch(block.segment);
}

void BlockPolicy::end_use(BlockIndex index) {
    Block& block = blocks_[index];
    block.used = false;
    Segment& segment = segments_[block.segment];
    --segment.used_blocks;
    segment.used_bytes -= block.size;
    touch(block.segment);
}

BlockPolicy::BlockIndex BlockPolicy::add_segment(Address address, Bytes size, StreamId stream) {
    SegmentIndex index = static_cast<SegmentIndex>(segments_.size());
    if (unused_segments_.empty()) {
        segments_.emplace_back();
        last_.emplace_back();
    } else {
        index = unused_segments_.back();
        unused_segments_.pop_back();
    }
    const BlockIndex only = new_block({address, size, kNone, kNone, index, 0, false});
    segments_[index] = {address, size, stream, only, 1, 0, 0, 0, 0};
    last_[index] = only;
    add_reserved(size, 1);
    return only;
}

void BlockPolicy::remove_segment(BlockIndex only) {
    FRAGSIM_ASSERT(is_whole_segment(only) && !blocks_[only].used);
    const SegmentIndex index = blocks_[only].segment;
    Segment& segment = segments_[index];
    stats_.inactive_split_bytes.all.change(-segment.split_bytes);
    stats_.inactive_split.all.change(-static_cast<Bytes>(segment.split_blocks));
    remove_reserved(segment.size, 1);
    segment = {0, 0, {}, kNone, 0, 0, 0, 0, 0};
    unused_segments_.push_back(index);
    remove_block(only);
}

BlockPolicy::BlockIndex BlockPolicy::extend_segment(SegmentIndex index, Bytes size) {
    Segment& segment = segments_[index];
    const BlockIndex last = last_[index];
    const BlockIndex added = new_block({blocks_[last].end(), size, last, kNone, index, 0, false});
    blocks_[last].next = added;
    last_[index] = added;
    segment.size += size;
    ++segment.blocks;
    add_reserved(size, 0);
    touch(index);
    return added;
}

void BlockPolicy::shrink_segment(SegmentIndex index, Bytes size) {
    const BlockIndex last = last_[index];
    FRAGSIM_ASSERT(!blocks_[last].used && size <= blocks_[last].size);
    if (size == blocks_[last].size) {
        if (is_whole_segment(last)) return remove_segment(last);
        last_[index] = blocks_[last].prev;
        blocks_[last_[index]].next = kNone;
        --segments_[index].blocks;
        remove_block(last);
    } else {
        blocks_[last].size -= size;
    }
    segments_[index].size -= size;
    remove_reserved(size, 0);
    touch(index);
}

BlockPolicy::BlockIndex BlockPolicy::split(BlockIndex low, Bytes size) {
    const Block whole = blocks_[low];
    const BlockIndex high = new_block({whole.address + static_cast<Address>(size), whole.size - size, low, whole.next,
        whole.segment, whole.set, false});
    blocks_[low].size = size;
    blocks_[low].next = high;
    (whole.next == kNone ? last_[whole.segment] : blocks_[whole.next].prev) = high;
    ++segments_[whole.segment].blocks;
    touch(whole.segment);
    ++stats_.num_splits;
    return high;
}

void BlockPolicy::join(BlockIndex low, BlockIndex high) {
    const Block upper = blocks_[high];
    blocks_[low].size += upper.size;
    blocks_[low].next = upper.next;
    (upper.next == kNone ? last_[upper.segment] : blocks_[upper.next].prev) = low;
    --segments_[upper.segment].blocks;
    touch(upper.segment);
    ++stats_.num_coalesces;
    remove_block(high);
}

BlockPolicy::BlockIndex BlockPolicy::new_block(const Block& block) {
    if (unused_blocks_.empty()) {
        blocks_.push_back(block);
        return static_cast<BlockIndex>(blocks_.size() - 1);
    }
    const BlockIndex index = unused_blocks_.back();
    unused_blocks_.pop_back();
    blocks_[index] = block;
    return index;
}

// Free blocks count as inactive split while something else in their segment is used.
void BlockPolicy::refresh_split() {
    for (const SegmentIndex index : touched_) {
        Segment& segment = segments_[index];
        if (segment.first == kNone) continue;
        const bool in_use = segment.used_blocks > 0;
        const Bytes bytes = in_use ? segment.size - segment.used_bytes : 0;
        const std::uint32_t count = in_use ? segment.blocks - segment.used_blocks : 0;
        stats_.inactive_split_bytes.all.change(bytes - segment.split_bytes);
        stats_.inactive_split.all.change(static_cast<Bytes>(count) - static_cast<Bytes>(segment.split_blocks));
        segment.split_bytes = bytes;
        segment.split_blocks = count;
    }
    touched_.clear();
}

MemoryPicture BlockPolicy::picture() const {
    std::vector<const Segment*> ordered;
    for (const Segment& segment : segments_)
        if (segment.first != kNone) ordered.push_back(&segment);
    std::sort(
        ordered.begin(), ordered.end(), [](const Segment* a, const Segment* b) { return a->address < b->address; });
    const std::vector<BufferId> buffer_of = buffers_by_block();

    std::vector<bool> drawn(buffers().size());  // a buffer in several blocks shows its request with the first
    MemoryPicture picture;
    for (const Segment* segment : ordered) {
        picture.segments.push_back({segment->address, segment->size, segment->stream, 0, false, false,
            static_cast<std::uint32_t>(picture.blocks.size()), segment->blocks});
        for (BlockIndex b = segment->first; b != kNone; b = blocks_[b].next) {
            BlockPicture block{blocks_[b].address, blocks_[b].size, 0, buffer_of[b], BlockState::inactive};
            if (block.buffer) {
                const Live& live = buffers()[block.buffer.value];
                block.requested = drawn[block.buffer.value] ? 0 : live.requested;
                block.state = live.state;
                drawn[block.buffer.value] = true;
            }
            picture.blocks.push_back(block);
        }
    }
    return picture;
}

}  // namespace fragsim
