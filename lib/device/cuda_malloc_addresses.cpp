#include "lib/device/cuda_malloc_addresses.hpp"

#include <algorithm>

#include "lib/core/error.hpp"

namespace fragsim {
namespace {

constexpr Bytes kSlab = 2 * kMiB;       // also the unit of everything above the slabs
constexpr Bytes kSlabPiece = 512;       // unit inside a slab
constexpr Bytes kContext = 512 * kMiB;  // in use below the top once a context exists

Bytes largest(const std::vector<CudaMallocAddresses::Range>& ranges) {
    Bytes size = 0;
    for (const auto& range : ranges) size = std::max(size, range.size);
    return size;
}

}  // namespace

CudaMallocAddresses::CudaMallocAddresses(Start start, Address top) {
    const Range context{top - kContext, kContext};
    if (start == Start::fresh) {
        std::vector<Range> tails{{top - 98 * kMiB, 2 * kMiB}, {top - 24 * kMiB, 24 * kMiB}};
        add_chunk({context, tails, context.size - 26 * kMiB, largest(tails)});
    } else {
        add_chunk({context, {}, context.size, 0});
        const Range streams{context.start - kChunkUnit, kChunkUnit};
        std::vector<Range> tail{{streams.start + 6 * kMiB, 26 * kMiB}};
        add_chunk({streams, tail, 6 * kMiB, largest(tail)});
    }
}

// A request that rounds up to a whole slab is a block of its own (not measured: none was recorded between 2,093,640
// bytes and 2 MiB).
bool CudaMallocAddresses::fits_slab(Bytes bytes) { return round_up(bytes, kSlabPiece) < kSlab; }

Address CudaMallocAddresses::malloc(Bytes bytes) {
    return fits_slab(bytes) ? slab_malloc(round_up(bytes, kSlabPiece)) : block_malloc(round_up(bytes, kSlab));
}

void CudaMallocAddresses::free(Address address, Bytes bytes) {
    if (fits_slab(bytes))
        slab_free(address, round_up(bytes, kSlabPiece));
    else
        block_free(address, round_up(bytes, kSlab));
}

Bytes CudaMallocAddresses::physical_cost(Bytes bytes) const {
    if (!fits_slab(bytes)) return round_up(bytes, kSlab);
    const bool fits = slab_ranges_.lower_bound({round_up(bytes, kSlabPiece), 0, 0}) != slab_ranges_.end();
    return fits ? 0 : kSlab;
}

// --- chunks ---------------------------------------------------------------------------------------------------------

Address CudaMallocAddresses::block_malloc(Bytes bytes) {
    physical_bytes_ += bytes;
    for (auto newest = by_age_.rbegin(); newest != by_age_.rend(); ++newest) {
        Chunk& chunk = chunks_[*newest];
        if (chunk.largest_free < bytes) continue;
        auto best = chunk.free.end();
        for (auto range = chunk.free.begin(); range != chunk.free.end(); ++range)
            if (range->size >= bytes && (best == chunk.free.end() || range->size < best->size)) best = range;
        const Address address = best->start;
        best->start += static_cast<Address>(bytes);
        best->size -= bytes;
        if (best->size == 0) chunk.free.erase(best);
        chunk.live += bytes;
        chunk.largest_free = largest(chunk.free);
        return address;
    }
    const Bytes size = round_up(bytes, kChunkUnit);
    const Range range{place_chunk(size), size};
    std::vector<Range> rest;
    if (size > bytes) rest.push_back({range.start + static_cast<Address>(bytes), size - bytes});
    insert_chunk({range, rest, bytes, size - bytes});
    return range.start;
}

void CudaMallocAddresses::block_free(Address address, Bytes bytes) {
    physical_bytes_ -= bytes;
    const auto above = std::upper_bound(by_address_.begin(), by_address_.end(), address,
        [&](Address a, std::uint32_t slot) { return a < chunks_[slot].range.start; });
    FRAGSIM_ASSERT(above != by_address_.begin());
    const auto place = above - 1;
    Chunk& chunk = chunks_[*place];
    FRAGSIM_ASSERT(address + static_cast<Address>(bytes) <= chunk.range.end() && chunk.live >= bytes);
    chunk.live -= bytes;
    if (chunk.live == 0) {  // the slot is unused from now on
        unused_.push_back(*place);
        by_age_.erase(std::find(by_age_.begin(), by_age_.end(), *place));
        by_address_.erase(place);
        return;
    }
    auto next = std::lower_bound(
        chunk.free.begin(), chunk.free.end(), address, [](const Range& range, Address a) { return range.start < a; });
    Range joined{address, bytes};
    if (next != chunk.free.end() && next->start == joined.end()) {
        joined.size += next->size;
        next = chunk.free.erase(next);
    }
    if (next != chunk.free.begin() && (next - 1)->end() == joined.start)
        (next - 1)->size += joined.size;
    else
        chunk.free.insert(next, joined);
    chunk.largest_free = largest(chunk.free);
}

// The upper end of the highest hole that is larger than `bytes` (one of exactly that size is passed over), else the
// place directly below the lowest chunk.
Address CudaMallocAddresses::place_chunk(Bytes bytes) {
    if (const auto expected = expected_place(bytes)) return *expected;
    for (std::size_t i = by_address_.size(); i-- > 1;) {
        const Address hole_end = chunks_[by_address_[i]].range.start;
        const Address hole_start = chunks_[by_address_[i - 1]].range.end();
        if (static_cast<Bytes>(hole_end - hole_start) > bytes) return hole_end - static_cast<Address>(bytes);
    }
    return chunks_[by_address_.front()].range.start - static_cast<Address>(bytes);
}

void CudaMallocAddresses::add_chunk(Chunk chunk) {
    std::uint32_t slot;
    if (unused_.empty()) {
        slot = static_cast<std::uint32_t>(chunks_.size());
        chunks_.emplace_back();
    } else {
        slot = unused_.back();
        unused_.pop_back();
    }
    const Address start = chunk.range.start;
    chunks_[slot] = std::move(chunk);
    by_age_.push_back(slot);
    by_address_.insert(std::lower_bound(by_address_.begin(), by_address_.end(), start,
                           [&](std::uint32_t s, Address a) { return chunks_[s].range.start < a; }),
        slot);
}

// A new chunk, less what is blocked in it.
void CudaMallocAddresses::insert_chunk(Chunk chunk) {
    for (const Range& range : blocked_) carve(chunk, range);
    add_chunk(std::move(chunk));
}

// Takes what is free of a range out of a chunk.
void CudaMallocAddresses::carve(Chunk& chunk, Range range) {
    std::vector<Range> left;
    for (const Range& free : chunk.free) {
        const Address start = std::max(free.start, range.start), end = std::min(free.end(), range.end());
        if (start >= end) {
            left.push_back(free);
            continue;
        }
        chunk.live += static_cast<Bytes>(end - start);
        if (free.start < start) left.push_back({free.start, static_cast<Bytes>(start - free.start)});
        if (end < free.end()) left.push_back({end, static_cast<Bytes>(free.end() - end)});
    }
    chunk.free = std::move(left);
    chunk.largest_free = largest(chunk.free);
}

const CudaMallocAddresses::Chunk* CudaMallocAddresses::chunk_at(Address address) const {
    const auto above = std::upper_bound(by_address_.begin(), by_address_.end(), address,
        [&](Address a, std::uint32_t slot) { return a < chunks_[slot].range.start; });
    if (above == by_address_.begin()) return nullptr;
    const Chunk& chunk = chunks_[*(above - 1)];
    return address < chunk.range.end() ? &chunk : nullptr;
}

CudaMallocAddresses::Range CudaMallocAddresses::chunk_range_at(Address address) const {
    const Chunk* chunk = chunk_at(address);
    return chunk ? chunk->range : Range{address, 0};
}

CudaMallocAddresses::Range CudaMallocAddresses::free_range_at(Address address) const {
    if (const Chunk* chunk = chunk_at(address))
        for (const Range& free : chunk->free)
            if (free.start <= address && address < free.end()) return free;
    return {address, 0};
}

bool CudaMallocAddresses::overlaps_a_chunk(Range range) const {
    return std::any_of(chunks_.begin(), chunks_.end(), [&](const Chunk& chunk) {
        return chunk.live > 0 && chunk.range.start < range.end() && range.start < chunk.range.end();
    });
}

void CudaMallocAddresses::block(Range range) {
    blocked_.push_back(range);
    for (const std::uint32_t slot : by_address_) carve(chunks_[slot], range);
}

std::optional<Address> CudaMallocAddresses::expected_place(Bytes bytes) {
    constexpr std::size_t kLookAhead = 16;  // chunks that another policy may leave out or ask for in another order
    for (std::size_t i = next_expected_; i < expected_chunks_.size() && i < next_expected_ + kLookAhead; ++i) {
        if (expected_chunks_[i].size != bytes || overlaps_a_chunk(expected_chunks_[i])) continue;
        std::swap(expected_chunks_[i], expected_chunks_[next_expected_]);
        return expected_chunks_[next_expected_++].start;
    }
    return {};
}

bool CudaMallocAddresses::malloc_at(Address address, Bytes requested) {
    const Bytes bytes = round_up(requested, kSlab);
    const Range wanted{address, bytes};
    if (chunk_at(address)) {
        if (const Range free = free_range_at(address); free.size == 0 || free.end() < wanted.end()) return false;
        carve(chunks_[static_cast<std::size_t>(chunk_at(address) - chunks_.data())], wanted);
        physical_bytes_ += bytes;
        return true;
    }
    // A chunk of its own; the part before the address, if any, is somebody else's.
    const auto unit = static_cast<Address>(kChunkUnit);
    const Address start = address / unit * unit,
                  end = std::max(start + static_cast<Address>(round_up(bytes, kChunkUnit)),
                      (wanted.end() + unit - 1) / unit * unit);
    if (overlaps_a_chunk({start, static_cast<Bytes>(end - start)})) return false;
    std::vector<Range> rest;
    if (wanted.end() < end) rest.push_back({wanted.end(), static_cast<Bytes>(end - wanted.end())});
    const Bytes free = rest.empty() ? 0 : rest.front().size;
    insert_chunk({{start, static_cast<Bytes>(end - start)}, rest, static_cast<Bytes>(end - start) - free, free});
    physical_bytes_ += bytes;
    return true;
}

void CudaMallocAddresses::adopt(std::vector<Range> ranges) {
    if (ranges.empty()) return;
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.start < b.start; });
    by_age_.clear(), by_address_.clear(), chunks_.clear(), unused_.clear();
    const Address unit = static_cast<Address>(kChunkUnit);
    std::vector<Chunk> runs;
    for (const Range& range : ranges) {
        const Address start = range.start / unit * unit;
        const Address end = (range.end() + unit - 1) / unit * unit;
        if (runs.empty() || runs.back().range.end() <= start) runs.push_back({{start, 0}, {}, 0, 0});
        Chunk& run = runs.back();
        run.range.size = std::max(run.range.size, static_cast<Bytes>(end - run.range.start));
        run.live += round_up(range.size, kSlab);
        physical_bytes_ += round_up(range.size, kSlab);
    }
    const Address top = runs.back().range.end();
    for (Chunk& run : runs) add_chunk(std::move(run));
    add_chunk({{top, kContext}, {}, kContext, 0});
}

// --- slabs ----------------------------------------------------------------------------------------------------------

Address CudaMallocAddresses::slab_malloc(Bytes bytes) {
    const auto insert = [&](Address start, Bytes size) {
        const SlabRange range{size, next_age_++, start};
        slab_ranges_.insert(range);
        slab_ranges_by_address_.insert({start, range});
    };
    const auto best = slab_ranges_.lower_bound({bytes, 0, 0});
    if (best == slab_ranges_.end()) {
        const Address slab = block_malloc(kSlab);
        insert(slab + static_cast<Address>(bytes), kSlab - bytes);
        return slab;
    }
    const SlabRange range = *best;
    slab_ranges_.erase(best);
    slab_ranges_by_address_.erase({range.start, range});
    if (range.size > bytes) insert(range.start + static_cast<Address>(bytes), range.size - bytes);
    return range.start;
}

void CudaMallocAddresses::slab_free(Address address, Bytes bytes) {
    const Address slab = address / static_cast<Address>(kSlab) * static_cast<Address>(kSlab);
    Range joined{address, bytes};
    const auto take = [&](std::set<std::pair<Address, SlabRange>>::iterator neighbour) {
        joined.start = std::min(joined.start, neighbour->first);
        joined.size += neighbour->second.size;
        slab_ranges_.erase(neighbour->second);
        return slab_ranges_by_address_.erase(neighbour);
    };
    auto next = slab_ranges_by_address_.lower_bound({address, SlabRange{}});
    if (next != slab_ranges_by_address_.end() && next->first == joined.end() && next->first != slab + kSlab)
        next = take(next);
    if (next != slab_ranges_by_address_.begin()) {
        const auto previous = std::prev(next);
        const Address previous_end = previous->first + static_cast<Address>(previous->second.size);
        if (previous_end == address && previous->first >= slab) take(previous);
    }
    if (joined.size == kSlab) {
        block_free(slab, kSlab);
        return;
    }
    const SlabRange range{joined.size, next_age_++, joined.start};
    slab_ranges_.insert(range);
    slab_ranges_by_address_.insert({joined.start, range});
}

}  // namespace fragsim
