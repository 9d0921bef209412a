// GMLake: physical blocks that lie apart are stitched into one range of addresses.
//
// Rationale: a fragmented cache has the memory, only not in one piece; mapping pages costs less than running out.
// Approach: large requests are served by primary blocks, ranges of 2 MiB chunks mapped where they were created, or by
// stitched blocks, ranges of their own that map the chunks of several primary blocks once more. A stitched block is
// kept when it is freed and serves again while all its chunks are free. Requests below small_limit_bytes go to 2 MiB
// segments cut by best fit. Streams share nothing.
// Source: spec/policies.md, section 7: `paper` is 7.1 (Guo et al.
// 2024, arXiv 2401.08156; from memory), `released` 7.2 (intelligent-machine-learning/glake @0274a9c, 07/2024).
// Differences from upstream: what a released stitched block is dropped for is its age alone; no retries of mapping;
// equal blocks of different segments are told by the segments' age, not by addresses, which differ from process to
// process.
//
//   primary    [ A1 | A2 ]      [ B ]      memory is mapped here first
//   stitched   [ A2 | B ]                  and here once more
//
// Files: stitching.cpp gets blocks, primary_blocks.cpp cuts, joins and gives back.
#pragma once

#include <set>
#include <vector>

#include "lib/core/ordered_blocks.hpp"
#include "lib/policy/block_policy.hpp"
#include "policies/gmlake/free_blocks.hpp"

namespace fragsim::gmlake {

enum class Variant { paper, released };

struct StitchingConfig {
    Variant variant;
    Bytes chunk;                // unit of memory
    Bytes small_limit;          // smaller requests are not stitched
    Bytes frag_limit;           // paper: smaller blocks are no material; released: smaller requests are not stitched
    std::int64_t stitch_limit;  // paper: stitched blocks that are kept
    std::int64_t reuse_limit;   // released: a stitched block serves requests down to this part of its size
    std::int64_t defrag_level;  // when to stitch: 0 before new memory, 1 when there is none, 2 (released) at last
};

class Stitching final : public BlockPolicy {
public:
    Stitching(const StitchingConfig& config, Device& device) : BlockPolicy(device, StreamOrder::own), config_(config) {}

    Bytes largest_free() const override;
    void free_sizes(std::vector<Bytes>& out) const override {
        for_each_free([&](const Block& free) { out.push_back(free.size); });
    }
    void empty_cache() override;
    Barrier barrier(const SegmentPicture& segment, const Request& request) const override {
        return segment.stream == request.stream ? Barrier::none : Barrier::other_stream;
    }

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
        FreeBlocks small;        // (size, place)
        FreeBlocks primary;      // (size, number); released: (size, place)
        OrderedBlocks stitched;  // all of them, by (chunks, number)
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
    FreeBlocks& free_set(BlockIndex b) {
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

}  // namespace fragsim::gmlake
