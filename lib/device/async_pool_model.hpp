// The driver's stream-ordered allocator (cudaMallocAsync) by its measured rule.
//
// Rationale: frees are ordered in streams, so memory freed on a stream can be used again on that stream at once, and by
// others when the GPU has passed the free. Memory comes in 32 MiB chunks that move inside one endless address range.
// Approach: a list of free ranges for each stream, and one, `ready`, for all; best fit, the oldest range among equals.
// Only when no wholly mapped range fits does a block go where memory is missing: idle chunks move there, highest
// address first, and what they do not cover is new.
// Source: spec/async-pool-rule.md, found from recorded calls on one H200, driver 580.159.04, CUDA 13.0; NVIDIA may
// change it with any driver. What that page left open was settled on the same card with 855 programs (64,155
// allocations, 836 programs right in everything; tests/gpu/results/async_pool has those that decide):
//   * the order of streams is that of their first call on the pool, an allocation or a free (68 programs; by first
//     allocation 24 of them come out wrong, by creation 64, by handle 62)
//   * what is left of a range goes back before idle chunks are taken, so that its own may be taken
//   * a synchronisation releases after each range that it moves, highest chunk first; if it moves nothing, not at all
//   * a growth that fails keeps what it has moved and added, the range goes back as a new one, memory beyond the
//     threshold is released, no other range is tried; only then comes memory that another stream still uses
//   * under a maximum size the address range is twice that size, and its free end is a range like any other
// Not modelled: events between streams and streams that are destroyed (no trace records them), so
// follow_event_dependencies changes nothing here.
//
//   offset 0        32 MiB       64 MiB       96 MiB
//   [live|own 1|live|ready..|live|ready.......|..........ready, endless..........
//   [  mapped   ][  mapped   ][   idle    ][  unmapped ...
#pragma once

#include <functional>

#include "lib/device/stream_ordered_pool.hpp"
#include "lib/core/ordered_blocks.hpp"

namespace fragsim {

class AsyncPoolModel final : public StreamOrderedPool {
public:
    static constexpr Bytes kUnit = 512;  // sizes are multiples of it

    // What the pool asks of the device it lives on.
    struct Memory {
        std::function<bool(Bytes)> take;  // physical memory; false: there is none
        std::function<void(Bytes)> give_back;
    };
    // `base`: address of the pool's range, a multiple of kChunk.
    AsyncPoolModel(const PoolProperties& properties, Address base, Memory memory);
    ~AsyncPoolModel() override;

    std::optional<Allocation> allocate(Bytes bytes, StreamId stream) override;
    void free(const Allocation& allocation, StreamId stream) override;
    void synchronized(std::optional<StreamId> stream) override;
    void trim_to(Bytes keep) override;

    Bytes reserved() const override { return mapped_chunks_ * kChunk; }
    std::span<const Change> changes() const override { return changes_; }
    Bytes idle_bytes() const override { return idle_chunks_ * kChunk; }
    Bytes largest_free() const override;
    void free_sizes(std::vector<Bytes>& out) const override;
    MemoryPicture picture() const override;

private:
    using RangeIndex = std::uint32_t;
    static constexpr RangeIndex kNone = 0xffffffffu;
    static constexpr Bytes kEndless = Bytes{1} << 45;  // end of the address range; nothing comes near it

    // Which list a range is in: live, ready, or the own list of the stream of rank (list - kOwn). Streams rank in the
    // order of their first calls.
    using ListId = std::uint32_t;
    static constexpr ListId kLive = 0, kReady = 1, kOwn = 2;

    // Ranges tile the address range in a doubly linked list; neighbours in one free list are always joined.
    struct Range {
        Bytes start, size;  // from the pool's base
        RangeIndex prev, next;
        ListId list;
        Bytes holes;           // unmapped chunks in it; they lie in ranges of `ready` only
        std::uint64_t stamp;   // when this very range came to be
        std::uint64_t ticket;  // the latest free of its stream that went into it
        Bytes end() const { return start + size; }
    };

    // Steps of an allocation: each finds a range of at least `size`, or none.
    static RangeIndex best_fit(const OrderedBlocks& free, Bytes size);
    RangeIndex find_elsewhere(Bytes size, std::uint32_t rank) const;
    RangeIndex find_any(Bytes size) const;
    // Cuts the first `size` bytes off and gives them memory. False: there is not enough; what there was stays in the
    // range.
    bool back(RangeIndex range, Bytes size);
    void cut(RangeIndex range, Bytes size, Bytes holes = 0);

    std::uint32_t rank_of(StreamId stream);
    // All frees of the stream become free for everyone, the latest first. `releasing`: as a synchronisation does.
    void promote(std::uint32_t rank, bool releasing);
    void release(Bytes keep);
    // Takes chunks from idle places, highest address first.
    void unmap_idle(Bytes chunks, bool moved);

    RangeIndex new_range(const Range& range);
    void insert(RangeIndex range, ListId list);  // joins it with its neighbours
    void enter(RangeIndex range);                // as it is
    void take_out(RangeIndex range);
    void absorb_next(RangeIndex range);
    OrderedBlocks& index_of(const Range& range);
    static Bytes idle_chunks_of(const Range& range);
    bool is_mapped(Bytes chunk) const {
        return chunk < static_cast<Bytes>(mapped_.size()) && mapped_[static_cast<std::size_t>(chunk)];
    }
    void set_mapped(Bytes chunk, bool mapped, bool moved);
    // Calls visit(start, size) for each mapped run of a range.
    template <class Visit>
    void for_each_mapped_run(const Range& range, Visit visit) const;

    PoolProperties properties_;
    Address base_;
    Memory memory_;
    std::vector<Range> ranges_;
    std::vector<RangeIndex> unused_;
    OrderedBlocks ready_mapped_, ready_holed_;  // by (size, stamp): without and with holes
    std::vector<OrderedBlocks> own_;            // by rank
    std::vector<std::uint64_t> tickets_;        // by rank: frees so far
    std::vector<StreamId> streams_;             // by rank
    std::vector<bool> mapped_;                  // by chunk
    RangeIndex tail_ = kNone;                   // the range at the end
    Bytes mapped_chunks_ = 0, idle_chunks_ = 0;
    std::uint64_t next_stamp_ = 0;
    mutable std::optional<Bytes> largest_holed_;  // largest mapped run in ready_holed_; none: to be found again
    std::vector<Change> changes_;
    std::vector<RangeIndex> moving_;  // scratch of promote
};

}  // namespace fragsim
