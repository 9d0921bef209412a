// GMLake: physical blocks that lie apart are stitched into one range of addresses.
//
// Rationale: a fragmented cache has the memory, only not in one piece; mapping pages costs less than running out.
// Approach: large requests are served by primary blocks, ranges of 2 MiB chunks mapped where they were created, or by
// stitched blocks, ranges of their own that map the chunks of several primary blocks once more. A stitched block is
// kept when it is freed and serves again while all its chunks are free. Requests below small_limit_bytes go to 2 MiB
// segments cut by best fit. Streams share nothing. Source: spec/policies.md, section 7: `paper` is 7.1 (Guo et al.
// 2024, arXiv 2401.08156; from memory), `released` 7.2 (intelligent-machine-learning/glake @0274a9c, 07/2024).
// Differences from upstream: what a released stitched block is dropped for is its age alone; no retries of mapping;
// equal blocks of different segments are told by the segments' age, not by addresses, which differ from process to
// process.
//
//   primary    [ A1 | A2 ]      [ B ]      memory is mapped here first
//   stitched   [ A2 | B ]                  and here once more
#include <algorithm>
#include <set>

#include "lib/core/ordered_blocks.hpp"
#include "lib/policy/block_policy.hpp"
#include "lib/policy/parameters.hpp"
#include "policies/gmlake/free_blocks.hpp"

namespace fragsim {
namespace {

enum class Variant { paper, released };

struct StitchingConfig {
    Variant variant;
    Bytes chunk;                // unit of memory
    Bytes small_limit;          // smaller requests are not stitched
    Bytes frag_limit;           // paper: smaller blocks are no material; released: smaller requests are not stitched
    std::int64_t stitch_limit;  // paper: stitched blocks that are kept
    std::int64_t reuse_limit;   // released: a stitched block serves requests down to this part of its size
    std::int64_t
        defrag_level;  // when to stitch: 0 before new memory is got, 1 when there is none, 2 (released) at last
};

class Stitching final : public BlockPolicy {
public:
    Stitching(const StitchingConfig& config, Device& device) : BlockPolicy(device, StreamOrder::own), config_(config) {}

    Bytes largest_free() const override;
    void free_sizes(std::vector<Bytes>& out) const override {
        for_each_free([&](const Block& free) { out.push_back(free.size); });
    }
    void empty_cache() override;

private:
    static constexpr std::uint32_t kStitched = 1u << 31;  // handles from here on are stitched blocks
    static constexpr std::uint32_t kSmall = 0;            // set of small blocks; a primary block's set is its number
    static constexpr Bytes kSmallSegment = 2 * kMiB, kSmallAlign = 512;
    static constexpr Bytes kStitchedLimit = 1000 * kGiB;  // released: addresses that stitched blocks may take

    struct Piece {
        SegmentIndex segment;
        Bytes first, chunks;  // in the segment
    };
    struct Stitched {
        Address address = 0;  // 0: the slot is unused
        Bytes chunks = 0;
        std::uint32_t stream = 0;
        std::uint64_t number = 0, last_use = 0;
        std::vector<Piece> pieces;
        std::vector<BlockIndex> in_use;  // the primary blocks it occupies while it is allocated
    };
    struct Stream {
        gmlake::FreeBlocks small;    // (size, place)
        gmlake::FreeBlocks primary;  // (size, number); released: (size, place)
        OrderedBlocks stitched;      // all of them, by (chunks, number)
    };

    std::optional<Place> place(const Request& request) override;
    void give_back(const Place& place, StreamId stream) override;
    BlockIndex take(const Request& request) override;
    void retire(BlockIndex block, StreamId stream) override;
    std::vector<BufferId> buffers_by_block() const override;

    std::optional<Place> place_large(Bytes chunks, StreamId stream);
    std::optional<Place> place_by_paper(Bytes chunks, StreamId stream);
    std::optional<Place> place_as_released(Bytes chunks, StreamId stream);
    BlockIndex take_primary(Bytes chunks, std::uint32_t stream, bool exact);
    std::optional<Place> reuse_stitched(Bytes chunks, Bytes most, std::uint32_t stream);
    std::optional<Place> stitch(Bytes chunks, StreamId stream, bool with_new);
    BlockIndex create(Bytes chunks, Bytes needed, StreamId stream);
    std::optional<Place> hand_out(BlockIndex block);
    std::optional<Place> hand_out_stitched(std::uint32_t index, Bytes chunks);
    void drop_old();
    void drop(std::uint32_t index);
    bool release_free_segments();

    bool is_free(const Stitched& stitched) const;
    void carve(const Piece& piece, std::vector<BlockIndex>& out);
    BlockIndex cut(BlockIndex block, Bytes size);  // the rest, with a number of its own
    void note_chunks(BlockIndex block);            // which chunks of its segment it holds
    void insert(BlockIndex b) {
        const bool numbered = block(b).set != kSmall && config_.variant == Variant::paper;
        free_set(b).insert(block(b).size, numbered ? block(b).set : place_of(b), b);
    }
    void erase(BlockIndex b) { free_set(b).erase(b); }
    // Older segments first, then by address.
    std::uint64_t place_of(BlockIndex b) const {
        return (serial_[block(b).segment] << 44) + (block(b).address - segment_of(b).address);
    }
    void note_segment(BlockIndex only) {
        if (block(only).segment >= serial_.size()) serial_.resize(block(only).segment + 1u);
        serial_[block(only).segment] = next_serial_++;
    }
    gmlake::FreeBlocks& free_set(BlockIndex b) {
        Stream& stream = stream_of(segment_of(b).stream.value);
        return block(b).set == kSmall ? stream.small : stream.primary;
    }
    Stream& stream_of(std::uint32_t stream) {
        if (stream >= streams_.size()) streams_.resize(stream + 1u);
        return streams_[stream];
    }
    Bytes chunk_in_segment(BlockIndex b) const {
        return static_cast<Bytes>(block(b).address - segment_of(b).address) / config_.chunk;
    }

    StitchingConfig config_;
    mutable std::vector<Stream> streams_;            // asking for the largest clears stale entries away
    std::vector<Stitched> stitched_;                 // slots
    std::vector<std::vector<BlockIndex>> block_at_;  // by segment, then chunk
    std::vector<std::uint64_t> serial_;              // by segment
    std::uint64_t next_serial_ = 0;
    std::uint32_t next_number_ = 1;
    std::uint64_t clock_ = 0;
    Bytes stitched_bytes_ = 0;  // of addresses
    std::int64_t stitched_count_ = 0;
    std::set<std::pair<std::uint64_t, std::uint32_t>> idle_;  // stitched blocks that are not allocated, by last use
    std::vector<std::uint32_t> unused_;                       // slots of stitched_
};

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
    gmlake::FreeBlocks& free = stream_of(stream.value).primary;
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
    const auto joins = [&](BlockIndex neighbour) { return neighbour != kNone && block(neighbour).set != kNone; };
    if (const BlockIndex next = free_next(b); joins(next)) {
        erase(next);
        join(b, next);
    }
    if (const BlockIndex prev = free_prev(b); joins(prev)) {
        erase(prev);
        join(prev, b);
        b = prev;
    }
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

}  // namespace

PolicyInfo stitching_policy() {
    PolicyInfo info;
    info.name = "stitching";
    info.summary =
        "GMLake: free blocks that lie apart are mapped once more, one behind the other, as one block.\n"
        "Almost nothing above 2 MiB is lost; every new combination costs a mapping a chunk.";
    info.reference = "GMLake, Guo et al. 2024 (arXiv 2401.08156); intelligent-machine-learning/glake (07/2024)";
    info.remaps = true;
    info.parameters = {
        {"variant", "paper|released", "paper", "the published rule, or what the released code does"},
        {"chunk_bytes", "bytes", "2MiB", "unit of memory; a multiple of 2 MiB"},
        {"small_limit_bytes", "bytes", "1MiB", "smaller requests are served from 2 MiB segments and never stitched"},
        {"frag_limit_bytes", "bytes", "0",
            "paper: smaller blocks are not stitched (2 MiB); released: smaller requests are not (512 MiB); 0: these"},
        {"stitch_limit", "count", "64", "paper: stitched blocks that are kept; released keeps 1000 GiB of addresses"},
        {"reuse_limit", "count", "10", "released: a stitched block may serve a request that much smaller"},
        {"defrag_level", "count", "0",
            "0: stitch before new memory is got; 1: when there is none; 2: when giving back did not help (released)"},
    };
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("stitching", known, given);
        StitchingConfig config{read.choice<Variant>("variant"), read.bytes("chunk_bytes"),
            read.bytes("small_limit_bytes"), read.bytes("frag_limit_bytes"), read.count("stitch_limit", 0, 1'000'000),
            read.count("reuse_limit", 1, 1'000'000), read.count("defrag_level", 0, 2)};
        if (config.chunk < 2 * kMiB || config.chunk % (2 * kMiB) != 0)
            read.refuse("chunk_bytes", "a multiple of 2 MiB");
        if (config.frag_limit == 0) config.frag_limit = config.variant == Variant::paper ? 2 * kMiB : 512 * kMiB;
        return std::make_unique<Stitching>(config, context.device);
    };
    return info;
}

}  // namespace fragsim
