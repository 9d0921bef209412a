// What policies that cut segments into blocks have in common: the blocks, their neighbours, and the statistics of
// segments that are split. A policy derived from this chooses the block; the free blocks are its own to index.
//
//   segment  [block|block|block.........]   a doubly linked list of blocks in address order
//
// Equations for every segment: size == sum of its blocks' sizes; used_bytes == sum of the sizes of its used blocks.
#pragma once

#include <vector>

#include "lib/policy/accounting_policy.hpp"

namespace fragsim {

class BlockPolicy : public AccountingPolicy {
public:
    MemoryPicture picture() const final;

protected:
    using BlockIndex = std::uint32_t;
    using SegmentIndex = std::uint32_t;
    static constexpr std::uint32_t kNone = 0xffffffffu;

    struct Block {
        Address address;
        Bytes size;
        BlockIndex prev, next;  // neighbours in the segment
        SegmentIndex segment;
        std::uint32_t set;  // the policy's own: which set of free blocks it is in, or came from
        bool used;
        Address end() const { return address + static_cast<Address>(size); }
    };
    struct Segment {
        Address address;
        Bytes size;
        StreamId stream;   // that it was got for
        BlockIndex first;  // kNone: the slot is unused
        std::uint32_t blocks, used_blocks;
        Bytes used_bytes;
        Bytes split_bytes;  // what it counts for in inactive_split
        std::uint32_t split_blocks;
    };

    using AccountingPolicy::AccountingPolicy;

    // A block of at least the request's size that is in none of the policy's sets. kNone: out of memory.
    virtual BlockIndex take(const Request& request) = 0;
    // The block's memory may be reused, by `stream` at once. It is not used any more and in no set.
    virtual void retire(BlockIndex block, StreamId stream) = 0;

    // A new segment of one free block, in no set.
    BlockIndex add_segment(Address address, Bytes size, StreamId stream);
    // The segment of a block that is all of it.
    void remove_segment(BlockIndex only);
    // More memory behind the last block of a segment: a free block, in no set.
    BlockIndex extend_segment(SegmentIndex segment, Bytes size);
    // The high end of the segment's last block goes, all of it or a part.
    void shrink_segment(SegmentIndex segment, Bytes size);

    // Cuts the block after `size` bytes; the high part is returned, in no set.
    BlockIndex split(BlockIndex block, Bytes size);
    // Joins two neighbours, both in no set, into the lower one.
    void join(BlockIndex low, BlockIndex high);
    // The neighbour, if it is free; else kNone.
    BlockIndex free_next(BlockIndex block) const {
        const BlockIndex next = blocks_[block].next;
        return next != kNone && !blocks_[next].used ? next : kNone;
    }
    BlockIndex free_prev(BlockIndex block) const {
        const BlockIndex prev = blocks_[block].prev;
        return prev != kNone && !blocks_[prev].used ? prev : kNone;
    }
    // Joins a free block, in no set, with those of its free neighbours that may_join(neighbour) lets; erase(neighbour)
    // takes each out of its set. The block that has it all.
    template <class Erase, class MayJoin>
    BlockIndex coalesce(BlockIndex b, Erase erase, MayJoin may_join) {
        if (const BlockIndex next = free_next(b); next != kNone && may_join(next)) {
            erase(next);
            join(b, next);
        }
        const BlockIndex prev = free_prev(b);
        if (prev == kNone || !may_join(prev)) return b;
        erase(prev);
        join(prev, b);
        return prev;
    }
    template <class Erase>
    BlockIndex coalesce(BlockIndex b, Erase erase) {
        return coalesce(b, erase, [](BlockIndex) { return true; });
    }
    bool is_whole_segment(BlockIndex block) const {
        return blocks_[block].prev == kNone && blocks_[block].next == kNone;
    }

    template <class Visit>
    void for_each_free(Visit visit) const {
        for (const Segment& segment : segments_)
            for (BlockIndex b = segment.first; b != kNone; b = blocks_[b].next)
                if (!blocks_[b].used) visit(blocks_[b]);
    }

    const Block& block(BlockIndex index) const { return blocks_[index]; }
    void put_in_set(BlockIndex block, std::uint32_t set) { blocks_[block].set = set; }
    const Segment& segment_of(BlockIndex block) const { return segments_[blocks_[block].segment]; }
    const std::vector<Segment>& segments() const { return segments_; }
    BlockIndex last_block(SegmentIndex segment) const { return last_[segment]; }

    std::optional<Place> place(const Request& request) override;
    void give_back(const Place& place, StreamId stream) override;
    // For policies whose buffers lie in several blocks: a block becomes part of a buffer, or ceases to be.
    void begin_use(BlockIndex block);
    void end_use(BlockIndex block);
    // The buffer that each block is part of, for drawing.
    virtual std::vector<BufferId> buffers_by_block() const { return buffers_by_handle(blocks_.size()); }
    std::size_t block_slots() const { return blocks_.size(); }
    // Brings the statistics up to date after changes outside of take and retire.
    void refresh_split();

private:
    BlockIndex new_block(const Block& block);
    void remove_block(BlockIndex block) { unused_blocks_.push_back(block); }
    void touch(SegmentIndex segment) {
        if (touched_.empty() || touched_.back() != segment) touched_.push_back(segment);
    }

    std::vector<Block> blocks_;
    std::vector<BlockIndex> unused_blocks_;
    std::vector<Segment> segments_;
    std::vector<BlockIndex> last_;  // by segment: its last block
    std::vector<SegmentIndex> unused_segments_;
    std::vector<SegmentIndex> touched_;  // whose share of inactive_split may have changed
};

}  // namespace fragsim
