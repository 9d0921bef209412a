// Small and primary blocks: cutting and joining them, and giving memory back.
#include <algorithm>

#include "policies/gmlake/stitching.hpp"

namespace fragsim::gmlake {

// --- small blocks, and joining --------------------------------------------------------------------------------------

BlockPolicy::BlockIndex Stitching::take(const Request& request) {
    const Bytes size = round_up(request.bytes, kSmallAlign);
    BlockIndex found = stream_of(request.stream.value).small.smallest(size);
    if (found != kNone) {
        erase(found);
    } else {
        const Bytes segment = std::max(kSmallSegment, round_up(size, kSmallSegment));
        const std::optional<Address> address = device_.malloc(segment, request.stream);
        if (!address) return kNone;
        found = add_segment(*address, segment, request.stream);
        note_segment(found);
        put_in_set(found, kSmall);
    }
    if (block(found).size > size) insert(split(found, size));
    return found;
}

void Stitching::retire(BlockIndex b, StreamId) {
    const bool small = block(b).set == kSmall;
    if (!small && config_.variant == Variant::paper) return insert(b);
    b = coalesce(
        b, [&](BlockIndex neighbour) { erase(neighbour); },
        [&](BlockIndex neighbour) { return block(neighbour).set != kNone; });
    if (!small) {
        put_in_set(b, 1);
        note_chunks(b);
    }
    insert(b);
}

BlockPolicy::BlockIndex Stitching::cut(BlockIndex b, Bytes size) {
    const BlockIndex rest = split(b, size);
    put_in_set(rest, next_number_++);
    note_chunks(rest);
    return rest;
}

void Stitching::note_chunks(BlockIndex b) {
    const auto first = block_at_[block(b).segment].begin() + chunk_in_segment(b);
    std::fill(first, first + block(b).size / config_.chunk, b);
}

bool Stitching::is_free(const Stitched& stitched) const {
    for (const Piece& piece : stitched.pieces)
        for (Bytes chunk = piece.first; chunk < piece.first + piece.chunks;) {
            const BlockIndex b = block_at_[piece.segment][static_cast<std::size_t>(chunk)];
            if (block(b).used) return false;
            chunk = chunk_in_segment(b) + block(b).size / config_.chunk;
        }
    return true;
}

// The free primary blocks that hold exactly these chunks, taken out of their list, cut at the ends where they reach
// out.
void Stitching::carve(const Piece& piece, std::vector<BlockIndex>& out) {
    for (Bytes chunk = piece.first; chunk < piece.first + piece.chunks;) {
        BlockIndex b = block_at_[piece.segment][static_cast<std::size_t>(chunk)];
        erase(b);
        if (const Bytes before = chunk - chunk_in_segment(b); before > 0) {
            const BlockIndex rest = cut(b, before * config_.chunk);
            insert(b);
            b = rest;
        }
        const Bytes wanted = (piece.first + piece.chunks - chunk) * config_.chunk;
        if (block(b).size > wanted) insert(cut(b, wanted));
        out.push_back(b);
        chunk += block(b).size / config_.chunk;
    }
}

// --- giving back ----------------------------------------------------------------------------------------------------

// Stitched blocks beyond the limit go, the one that was used longest ago first, unless it is allocated.
void Stitching::drop_old() {
    while (
        config_.variant == Variant::paper ? stitched_count_ > config_.stitch_limit : stitched_bytes_ > kStitchedLimit) {
        if (idle_.empty()) return;
        drop(idle_.begin()->second);
    }
}

void Stitching::drop(std::uint32_t index) {
    const Bytes size = stitched_[index].chunks * config_.chunk;
    device_.unalias(stitched_[index].address, size, config_.chunk, {stitched_[index].stream});
    device_.unreserve(stitched_[index].address, size, {stitched_[index].stream});
    stream_of(stitched_[index].stream)
        .stitched.erase(OrderedBlocks::Key{stitched_[index].chunks, stitched_[index].number});
    stitched_bytes_ -= size;
    --stitched_count_;
    idle_.erase({stitched_[index].last_use, index});
    stitched_[index] = {};
    unused_.push_back(index);
}

// False: there was none.
bool Stitching::release_free_segments() {
    bool any = false;
    for (SegmentIndex i = 0; i < segments().size(); ++i) {
        const Segment segment = segments()[i];
        if (segment.first == kNone || segment.used_blocks > 0) continue;
        const bool small = block(segment.first).set == kSmall;
        const auto has_piece_here = [&](const Stitched& s) {
            return std::any_of(s.pieces.begin(), s.pieces.end(), [&](const Piece& p) { return p.segment == i; });
        };
        if (!small) {
            if (std::any_of(stitched_.begin(), stitched_.end(),
                    [&](const Stitched& s) { return !s.in_use.empty() && has_piece_here(s); }))
                continue;
            for (std::uint32_t s = 0; s < stitched_.size(); ++s)
                if (stitched_[s].address != 0 && has_piece_here(stitched_[s])) drop(s);
        }
        for (BlockIndex b = segment.first; b != kNone; b = block(b).next) erase(b);
        while (!is_whole_segment(segment.first)) join(segment.first, block(segment.first).next);
        remove_segment(segment.first);
        if (small) {
            device_.free(segment.address, segment.size, segment.stream);
        } else {
            device_.unmap(segment.address, segment.size, config_.chunk, segment.stream);
            device_.unreserve(segment.address, segment.size, segment.stream);
        }
        any = true;
    }
    return any;
}

void Stitching::empty_cache() {
    release_free_segments();
    refresh_split();
}

// --- looking at it --------------------------------------------------------------------------------------------------

Bytes Stitching::largest_free() const {
    Bytes largest = 0;
    for (Stream& stream : streams_)
        largest = std::max({largest, stream.small.largest_size(), stream.primary.largest_size()});
    return largest;
}

std::vector<BufferId> Stitching::buffers_by_block() const {
    std::vector<BufferId> all(block_slots());
    for (std::uint32_t i = 0; i < buffers().size(); ++i) {
        const Live& live = buffers()[i];
        if (live.state == BlockState::inactive) continue;
        if (live.place.handle < kStitched)
            all[live.place.handle] = {i};
        else
            for (const BlockIndex b : stitched_[live.place.handle - kStitched].in_use) all[b] = {i};
    }
    return all;
}

}  // namespace fragsim::gmlake
