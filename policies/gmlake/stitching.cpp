// Serving a request: by primary blocks, by stitched ones, by new memory.
#include "policies/gmlake/stitching.hpp"

namespace fragsim::gmlake {

std::optional<AccountingPolicy::Place> Stitching::place(const Request& request) {
    if (request.bytes < config_.small_limit) {
        if (auto found = BlockPolicy::place(request)) return found;
        return release_free_segments() ? BlockPolicy::place(request) : std::nullopt;
    }
    ++clock_;
    auto found = place_large((request.bytes + config_.chunk - 1) / config_.chunk, request.stream);
    drop_old();
    refresh_split();
    return found;
}

std::optional<AccountingPolicy::Place> Stitching::place_large(Bytes chunks, StreamId stream) {
    return config_.variant == Variant::paper ? place_by_paper(chunks, stream) : place_as_released(chunks, stream);
}

// Exact, stitched before, larger, several, several and new: the five states of the paper.
std::optional<AccountingPolicy::Place> Stitching::place_by_paper(Bytes chunks, StreamId stream) {
    if (const BlockIndex b = take_primary(chunks, stream.value, true); b != kNone) return hand_out(b);
    if (auto again = reuse_stitched(chunks, chunks, stream.value)) return again;
    if (const BlockIndex b = take_primary(chunks, stream.value, false); b != kNone) return hand_out(b);
    if (config_.defrag_level > 0)
        if (const BlockIndex b = create(chunks, chunks, stream); b != kNone) return hand_out(b);
    return stitch(chunks, stream, true);
}

std::optional<AccountingPolicy::Place> Stitching::place_as_released(Bytes chunks, StreamId stream) {
    // New segments follow PyTorch's rule: 20 MiB for requests below 10 MiB.
    const Bytes bytes = chunks * config_.chunk;
    const Bytes segment = bytes < 10 * kMiB ? round_up(20 * kMiB, config_.chunk) / config_.chunk : chunks;
    const bool stitchable = bytes >= config_.frag_limit;
    if (const BlockIndex b = take_primary(chunks, stream.value, false); b != kNone) return hand_out(b);
    if (auto again = reuse_stitched(chunks, config_.reuse_limit * chunks, stream.value)) return again;
    if (stitchable && config_.defrag_level == 0)
        if (auto found = stitch(chunks, stream, false)) return found;
    if (const BlockIndex b = create(segment, chunks, stream); b != kNone) return hand_out(b);
    if (stitchable && config_.defrag_level <= 1)
        if (auto found = stitch(chunks, stream, false)) return found;
    if (release_free_segments()) {
        ++stats_.num_alloc_retries;
        if (const BlockIndex b = create(segment, chunks, stream); b != kNone) return hand_out(b);
    }
    return stitchable ? stitch(chunks, stream, false) : std::nullopt;
}

// The smallest free primary block that is large enough, cut to size; `exact`: of that size only.
BlockPolicy::BlockIndex Stitching::take_primary(Bytes chunks, std::uint32_t stream, bool exact) {
    const Bytes size = chunks * config_.chunk;
    const BlockIndex found = stream_of(stream).primary.smallest(size);
    if (found == kNone || (exact && block(found).size != size)) return kNone;
    erase(found);
    if (block(found).size > size) insert(cut(found, size));
    return found;
}

// The smallest, then the oldest, of those that are free and have `chunks` to `most` chunks.
std::optional<AccountingPolicy::Place> Stitching::reuse_stitched(Bytes chunks, Bytes most, std::uint32_t stream) {
    const OrderedBlocks& all = stream_of(stream).stitched;
    auto p = all.lower_bound(chunks);
    while (p != OrderedBlocks::end() && all.size(p) <= most && !is_free(stitched_[all.block(p)])) p = all.next(p);
    if (p == OrderedBlocks::end() || all.size(p) > most) return {};
    const std::uint32_t best = all.block(p);
    for (Bytes left = chunks; const Piece& piece : stitched_[best].pieces) {
        if (left <= 0) break;
        carve({piece.segment, piece.first, std::min(left, piece.chunks)}, stitched_[best].in_use);
        left -= piece.chunks;
    }
    return hand_out_stitched(best, chunks);
}

// Free primary blocks, the largest first, until they are enough; `with_new`: what is missing is new memory.
std::optional<AccountingPolicy::Place> Stitching::stitch(Bytes chunks, StreamId stream, bool with_new) {
    FreeBlocks& free = stream_of(stream.value).primary;
    const Bytes size = chunks * config_.chunk;
    std::vector<BlockIndex> parts;
    Bytes sum = 0;
    while (sum < size) {
        const BlockIndex largest = free.largest();
        if (largest == kNone || (with_new && block(largest).size < config_.frag_limit)) break;
        erase(largest);
        parts.push_back(largest);
        sum += block(largest).size;
    }
    if (sum < size) {
        const Bytes missing = (size - sum) / config_.chunk;
        const BlockIndex added = with_new ? create(missing, missing, stream) : kNone;
        if (added == kNone) {
            for (const BlockIndex part : parts) insert(part);
            return {};
        }
        parts.push_back(added);
    } else if (sum > size) {
        insert(cut(parts.back(), block(parts.back()).size - (sum - size)));
    }
    if (parts.size() == 1) return hand_out(parts.front());

    std::uint32_t slot = static_cast<std::uint32_t>(stitched_.size());
    if (unused_.empty()) {
        stitched_.emplace_back();
    } else {
        slot = unused_.back();
        unused_.pop_back();
    }
    Stitched& stitched = stitched_[slot];
    stitched = {device_.reserve(size, stream), chunks, stream.value, next_number_++, clock_, {}, parts};
    idle_.insert({clock_, slot});
    stitched_bytes_ += size;
    ++stitched_count_;
    stream_of(stream.value).stitched.insert({chunks, stitched.number}, slot);
    Address to = stitched.address;
    for (const BlockIndex part : parts) {
        device_.alias(block(part).address, to, block(part).size, config_.chunk, stream);
        to += static_cast<Address>(block(part).size);
        stitched.pieces.push_back({block(part).segment, chunk_in_segment(part), block(part).size / config_.chunk});
    }
    return hand_out_stitched(slot, chunks);
}

// A new segment of `chunks`, cut to what is needed. kNone: the device has not that much.
BlockPolicy::BlockIndex Stitching::create(Bytes chunks, Bytes needed, StreamId stream) {
    const Bytes size = chunks * config_.chunk;
    const Address address = device_.reserve(size, stream);
    if (!device_.map(address, size, config_.chunk, stream)) {
        device_.unreserve(address, size, stream);
        return kNone;
    }
    const BlockIndex added = add_segment(address, size, stream);
    note_segment(added);
    put_in_set(added, next_number_++);
    if (block(added).segment >= block_at_.size()) block_at_.resize(block(added).segment + 1u);
    block_at_[block(added).segment].assign(static_cast<std::size_t>(chunks), added);
    if (needed < chunks) insert(cut(added, needed * config_.chunk));
    return added;
}

std::optional<AccountingPolicy::Place> Stitching::hand_out(BlockIndex b) {
    begin_use(b);
    return Place{block(b).address, block(b).size, b};
}

std::optional<AccountingPolicy::Place> Stitching::hand_out_stitched(std::uint32_t index, Bytes chunks) {
    idle_.erase({stitched_[index].last_use, index});
    stitched_[index].last_use = clock_;
    for (const BlockIndex b : stitched_[index].in_use) begin_use(b);
    return Place{stitched_[index].address, chunks * config_.chunk, kStitched + index};
}

void Stitching::give_back(const Place& place, StreamId stream) {
    if (place.handle < kStitched) return BlockPolicy::give_back(place, stream);
    const std::vector<BlockIndex> parts = std::move(stitched_[place.handle - kStitched].in_use);
    stitched_[place.handle - kStitched].in_use.clear();
    idle_.insert({stitched_[place.handle - kStitched].last_use, place.handle - kStitched});
    for (const BlockIndex b : parts) end_use(b);
    if (config_.variant == Variant::paper) {
        for (const BlockIndex b : parts) insert(b);
    } else {
        for (const BlockIndex b : parts) put_in_set(b, kNone);  // in no list, so that no other part joins it yet
        for (const BlockIndex b : parts) retire(b, stream);
    }
    refresh_split();
}

}  // namespace fragsim::gmlake
