// Which virtual address cudaMalloc returns. Addresses break ties between free blocks of equal size in PyTorch up to
// 2.12, so they decide what is reserved later.
//
// Source: spec/cudamalloc-addresses.md, found from recorded programs on an H200 (driver 580.159.04, CUDA 13.0, Linux).
// Exact there for a process that takes no address space of its own; other drivers: unknown.
//
// Three levels, each asking the next when nothing of its own fits:
//   slabs    requests below 2 MiB share 2 MiB blocks: the smallest free range of all slabs, the oldest among equals
//   chunks   the newest chunk that has room, in it the smallest range, among equals the lowest
//   space    new chunks, multiples of 32 MiB, go to the top of the highest hole that is larger, else below everything
//
//        lowest chunk          hole            chunk         context creation's 512 MiB
//   ... [#####....###]                    [###########][..##########..#####...] kTop
//      <- next chunk if no hole is larger
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim {

class CudaMallocAddresses {
public:
    struct Range {
        Address start;
        Bytes size;
        Address end() const { return start + static_cast<Address>(size); }
    };

    // What process start has left behind (section 2 of the source).
    enum class Start {
        fresh,          // only the default stream was used
        extra_streams,  // streams were created: the driver took what was free of its first chunks
    };

    static constexpr Address kTop = 0x7f8000000000;
    static constexpr Bytes kChunkUnit = 32 * kMiB;  // chunks are multiples of it, and aligned to it

    // `top`: end of the range that context creation leaves, a multiple of kChunkUnit. Every process has its own.
    explicit CudaMallocAddresses(Start start, Address top = kTop);

    // `bytes` > 0. The address space never runs out.
    Address malloc(Bytes bytes);
    // `bytes` as given to malloc.
    void free(Address address, Bytes bytes);

    // Physical memory taken: whole 2 MiB pages, slabs shared.
    Bytes physical_bytes() const { return physical_bytes_; }
    // What malloc(bytes) would add to it.
    Bytes physical_cost(Bytes bytes) const;

    // For following a recording, and for running on with what it showed.

    // Something else in the process has this range: it is not handed out. What malloc has handed out of it stays valid.
    void block(Range range);
    // Where new chunks went in the recorded process, in order. They go there again, as long as their sizes come in
    // about that order and the place is free; otherwise the rule decides.
    void expect_chunks(std::vector<Range> places) { expected_chunks_ = std::move(places); }
    // A block of `bytes` at a recorded address: malloc with the place given. False: not possible there, nothing
    // changed.
    bool malloc_at(Address address, Bytes bytes);
    // The chunk, or the free range of one, that `address` lies in; empty: none.
    Range chunk_range_at(Address address) const;
    Range free_range_at(Address address) const;

    // Takes over ranges that a process got before the history begins, as one chunk for every 32 MiB-aligned run of
    // them. Their gaps count as taken. Call before the first malloc.
    void adopt(std::vector<Range> ranges);

private:
    struct Chunk {
        Range range;
        std::vector<Range> free;  // by address, never adjacent
        Bytes live;               // size == live + sum of free
        Bytes largest_free;
    };
    struct SlabRange {
        Bytes size;
        std::uint64_t age;  // smaller is older; a range that changed its form is new
        Address start;
        auto operator<=>(const SlabRange&) const = default;
    };

    static bool fits_slab(Bytes bytes);
    Address block_malloc(Bytes bytes);  // multiple of 2 MiB
    void block_free(Address address, Bytes bytes);
    Address slab_malloc(Bytes bytes);  // multiple of 512, below 2 MiB
    void slab_free(Address address, Bytes bytes);
    Address place_chunk(Bytes bytes);
    std::optional<Address> expected_place(Bytes bytes);
    bool overlaps_a_chunk(Range range) const;
    void add_chunk(Chunk chunk);
    const Chunk* chunk_at(Address address) const;
    static void carve(Chunk& chunk, Range range);
    void insert_chunk(Chunk chunk);

    std::vector<std::uint32_t> by_age_;      // indices into chunks_, oldest first
    std::vector<std::uint32_t> by_address_;  // indices into chunks_, lowest first
    std::vector<Chunk> chunks_;              // slots, reused
    std::vector<std::uint32_t> unused_;
    std::vector<Range> blocked_;
    std::vector<Range> expected_chunks_;
    std::size_t next_expected_ = 0;

    std::set<SlabRange> slab_ranges_;
    std::set<std::pair<Address, SlabRange>> slab_ranges_by_address_;
    std::uint64_t next_age_ = 0;

    Bytes physical_bytes_ = 0;
};

}  // namespace fragsim
