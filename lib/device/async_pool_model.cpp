#include "lib/device/async_pool_model.hpp"

#include <algorithm>

namespace fragsim {

AsyncPoolModel::AsyncPoolModel(const PoolProperties& properties, Address base, Memory memory)
    : properties_(properties), base_(base), memory_(std::move(memory)) {
    const Bytes end = properties.max_size ? 2 * round_up(*properties.max_size, kChunk) : kEndless;
    tail_ = new_range({0, end, kNone, kNone, kReady, end / kChunk, next_stamp_++, 0});
    enter(tail_);
}

AsyncPoolModel::~AsyncPoolModel() { memory_.give_back(reserved()); }

// --- allocating -----------------------------------------------------------------------------------------------------

std::optional<StreamOrderedPool::Allocation> AsyncPoolModel::allocate(Bytes bytes, StreamId stream) {
    changes_.clear();
    const std::uint32_t rank = rank_of(stream);
    if (bytes > kEndless / 2) return {};
    const Bytes size = round_up(bytes, kUnit);
    const bool passed = properties_.allow_opportunistic && properties_.progress == GpuProgress::idle;

    RangeIndex found = best_fit(own_[rank], size);
    if (found == kNone) found = best_fit(ready_mapped_, size);
    if (found == kNone && passed) found = find_elsewhere(size, rank);
    if (found == kNone) {
        if (passed)
            for (std::uint32_t other = 0; other < own_.size(); ++other) promote(other, false);
        found = find_any(size);
        if (found == kNone || !back(found, size)) {
            release(properties_.release_threshold);
            // Memory that another stream still uses, at the price of a dependency between the two.
            found = properties_.allow_internal_dependencies ? find_elsewhere(size, rank) : kNone;
            if (found == kNone) return {};
            cut(found, size);
        }
    } else {
        cut(found, size);
    }
    return Allocation{base_ + static_cast<Address>(ranges_[found].start), size, found};
}

AsyncPoolModel::RangeIndex AsyncPoolModel::best_fit(const OrderedBlocks& free, Bytes size) {
    const auto best = free.lower_bound(size);
    return best == OrderedBlocks::end() ? kNone : free.block(best);
}

// Freed on another stream: the first stream that has a range, in the order of first calls.
AsyncPoolModel::RangeIndex AsyncPoolModel::find_elsewhere(Bytes size, std::uint32_t rank) const {
    for (std::uint32_t other = 0; other < own_.size(); ++other) {
        if (other == rank) continue;
        if (const RangeIndex found = best_fit(own_[other], size); found != kNone) return found;
    }
    return kNone;
}

// Mapped or not.
AsyncPoolModel::RangeIndex AsyncPoolModel::find_any(Bytes size) const {
    const RangeIndex whole = best_fit(ready_mapped_, size), holed = best_fit(ready_holed_, size);
    if (whole == kNone) return holed;
    if (holed == kNone) return whole;
    const Range &a = ranges_[whole], &b = ranges_[holed];
    return a.size != b.size ? (a.size < b.size ? whole : holed) : (a.stamp < b.stamp ? whole : holed);
}

// Chunks that are missing move there from idle places, what is left of the range included, and the others are new.
bool AsyncPoolModel::back(RangeIndex index, Bytes size) {
    const Range whole = ranges_[index];
    const Bytes first = whole.start / kChunk, last = (whole.start + size - 1) / kChunk;
    Bytes missing = 0;
    for (Bytes chunk = first; chunk <= last; ++chunk) missing += !is_mapped(chunk);
    Range rest = whole;
    rest.start += size, rest.size -= size, rest.holes -= missing;
    const Bytes idle = idle_chunks_ - idle_chunks_of(whole) + idle_chunks_of(rest);
    const Bytes moved = std::min(missing, idle), fresh = missing - moved;
    const Bytes most = properties_.max_size ? round_up(*properties_.max_size, kChunk) / kChunk : kEndless / kChunk;
    Bytes got = 0;
    while (got < fresh && mapped_chunks_ + got < most && memory_.take(kChunk)) ++got;

    cut(index, size, missing);
    unmap_idle(moved, true);
    Bytes still_moved = moved, filled = 0;
    for (Bytes chunk = first; chunk <= last && filled < moved + got; ++chunk) {
        if (is_mapped(chunk)) continue;
        set_mapped(chunk, true, still_moved-- > 0);
        ++filled;
    }
    if (got == fresh) return true;
    ranges_[index].holes = fresh - got;
    insert(index, kReady);
    return false;
}

// The low end of a free range becomes live; what is left stays in the list. `holes`: unmapped chunks that the low end
// touches and that get memory.
void AsyncPoolModel::cut(RangeIndex index, Bytes size, Bytes holes) {
    take_out(index);
    const Range whole = ranges_[index];
    if (whole.size > size) {
        const RangeIndex rest = new_range({whole.start + size, whole.size - size, index, whole.next, whole.list,
            whole.holes - holes, next_stamp_++, whole.ticket});
        (whole.next == kNone ? tail_ : ranges_[whole.next].prev) = rest;
        ranges_[index].next = rest;
        ranges_[index].size = size;
        enter(rest);
    }
    ranges_[index].list = kLive;
    ranges_[index].holes = 0;
}

// --- freeing, synchronising, releasing ------------------------------------------------------------------------------

void AsyncPoolModel::free(const Allocation& allocation, StreamId stream) {
    changes_.clear();
    const std::uint32_t rank = rank_of(stream);
    ranges_[allocation.handle].ticket = ++tickets_[rank];
    insert(allocation.handle, kOwn + rank);
}

std::uint32_t AsyncPoolModel::rank_of(StreamId stream) {
    const auto known = std::find(streams_.begin(), streams_.end(), stream);
    if (known != streams_.end()) return static_cast<std::uint32_t>(known - streams_.begin());
    streams_.push_back(stream);
    own_.emplace_back();
    tickets_.push_back(0);
    return static_cast<std::uint32_t>(streams_.size() - 1);
}

void AsyncPoolModel::synchronized(std::optional<StreamId> stream) {
    changes_.clear();
    for (std::uint32_t rank = 0; rank < own_.size(); ++rank)
        if (!stream || *stream == streams_[rank]) promote(rank, true);
}

void AsyncPoolModel::trim_to(Bytes keep) {
    changes_.clear();
    release(keep);
}

void AsyncPoolModel::promote(std::uint32_t rank, bool releasing) {
    const OrderedBlocks& own = own_[rank];
    if (own.empty()) return;
    moving_.clear();
    for (auto p = own.begin(); p != OrderedBlocks::end(); p = own.next(p)) moving_.push_back(own.block(p));
    std::sort(moving_.begin(), moving_.end(),
        [&](RangeIndex a, RangeIndex b) { return ranges_[a].ticket > ranges_[b].ticket; });
    for (const RangeIndex range : moving_) {
        take_out(range);
        insert(range, kReady);
        if (releasing) release(properties_.release_threshold);
    }
}

void AsyncPoolModel::release(Bytes keep) {
    const Bytes excess = std::min(mapped_chunks_ - keep / kChunk, idle_chunks_);
    if (excess <= 0) return;
    unmap_idle(excess, false);
    memory_.give_back(excess * kChunk);
}

void AsyncPoolModel::unmap_idle(Bytes chunks, bool moved) {
    for (RangeIndex index = tail_; chunks > 0; index = ranges_[index].prev) {
        Range& range = ranges_[index];
        if (range.list != kReady || idle_chunks_of(range) == 0) continue;
        const Bytes first = (range.start + kChunk - 1) / kChunk;
        Bytes chunk = std::min(range.end() / kChunk, static_cast<Bytes>(mapped_.size()));
        index_of(range).erase(OrderedBlocks::Key{range.size, range.stamp});
        while (chunks > 0 && --chunk >= first) {
            if (!is_mapped(chunk)) continue;
            set_mapped(chunk, false, moved);
            ++range.holes;
            --idle_chunks_;
            --chunks;
        }
        index_of(range).insert({range.size, range.stamp}, index);
        largest_holed_.reset();
    }
}

// --- ranges ---------------------------------------------------------------------------------------------------------

OrderedBlocks& AsyncPoolModel::index_of(const Range& range) {
    if (range.list >= kOwn) return own_[range.list - kOwn];
    return range.holes == 0 ? ready_mapped_ : ready_holed_;
}

// Holes are whole chunks and lie in one range, so what is not a hole of its whole chunks is idle.
Bytes AsyncPoolModel::idle_chunks_of(const Range& range) {
    return std::max<Bytes>(0, range.end() / kChunk - (range.start + kChunk - 1) / kChunk) - range.holes;
}

void AsyncPoolModel::insert(RangeIndex index, ListId list) {
    Range& range = ranges_[index];
    range.list = list;
    if (range.next != kNone && ranges_[range.next].list == list) absorb_next(index);
    if (range.prev != kNone && ranges_[range.prev].list == list) {
        const RangeIndex low = range.prev;
        take_out(low);
        ranges_[low].ticket = std::max(ranges_[low].ticket, range.ticket);
        ranges_[low].size += range.size;
        ranges_[low].holes += range.holes;
        ranges_[low].next = range.next;
        (range.next == kNone ? tail_ : ranges_[range.next].prev) = low;
        unused_.push_back(index);
        index = low;
    }
    ranges_[index].stamp = next_stamp_++;
    enter(index);
}

void AsyncPoolModel::absorb_next(RangeIndex index) {
    Range& range = ranges_[index];
    const RangeIndex high = range.next;
    take_out(high);
    range.ticket = std::max(range.ticket, ranges_[high].ticket);
    range.size += ranges_[high].size;
    range.holes += ranges_[high].holes;
    range.next = ranges_[high].next;
    (range.next == kNone ? tail_ : ranges_[range.next].prev) = index;
    unused_.push_back(high);
}

void AsyncPoolModel::enter(RangeIndex index) {
    const Range& range = ranges_[index];
    index_of(range).insert({range.size, range.stamp}, index);
    if (range.list != kReady) return;
    idle_chunks_ += idle_chunks_of(range);
    if (range.holes > 0) largest_holed_.reset();
}

void AsyncPoolModel::take_out(RangeIndex index) {
    const Range& range = ranges_[index];
    index_of(range).erase(OrderedBlocks::Key{range.size, range.stamp});
    if (range.list != kReady) return;
    idle_chunks_ -= idle_chunks_of(range);
    if (range.holes > 0) largest_holed_.reset();
}

AsyncPoolModel::RangeIndex AsyncPoolModel::new_range(const Range& range) {
    if (unused_.empty()) {
        ranges_.push_back(range);
        return static_cast<RangeIndex>(ranges_.size() - 1);
    }
    const RangeIndex index = unused_.back();
    unused_.pop_back();
    ranges_[index] = range;
    return index;
}

void AsyncPoolModel::set_mapped(Bytes chunk, bool mapped, bool moved) {
    if (static_cast<std::size_t>(chunk) >= mapped_.size()) mapped_.resize(static_cast<std::size_t>(chunk) + 1);
    mapped_[static_cast<std::size_t>(chunk)] = mapped;
    mapped_chunks_ += mapped ? 1 : -1;
    changes_.push_back({mapped, base_ + static_cast<Address>(chunk * kChunk), kChunk, moved});
}

// --- looking at it --------------------------------------------------------------------------------------------------

template <class Visit>
void AsyncPoolModel::for_each_mapped_run(const Range& range, Visit visit) const {
    if (range.holes == 0) return visit(range.start, range.size);
    const Bytes end = std::min(range.end(), static_cast<Bytes>(mapped_.size()) * kChunk);
    for (Bytes start = range.start; start < end;) {
        Bytes stop = start;
        while (stop < end && is_mapped(stop / kChunk)) stop = std::min(end, (stop / kChunk + 1) * kChunk);
        if (stop > start) visit(start, stop - start);
        start = stop > start ? stop : (start / kChunk + 1) * kChunk;
    }
}

Bytes AsyncPoolModel::largest_free() const {
    if (!largest_holed_) {
        Bytes largest = 0;
        for (auto p = ready_holed_.begin(); p != OrderedBlocks::end(); p = ready_holed_.next(p))
            for_each_mapped_run(
                ranges_[ready_holed_.block(p)], [&](Bytes, Bytes size) { largest = std::max(largest, size); });
        largest_holed_ = largest;
    }
    Bytes largest = std::max(*largest_holed_, ready_mapped_.largest());
    for (const OrderedBlocks& own : own_) largest = std::max(largest, own.largest());
    return largest;
}

void AsyncPoolModel::free_sizes(std::vector<Bytes>& out) const {
    for (RangeIndex index = tail_; index != kNone; index = ranges_[index].prev)
        if (ranges_[index].list != kLive)
            for_each_mapped_run(ranges_[index], [&](Bytes, Bytes size) { out.push_back(size); });
}

MemoryPicture AsyncPoolModel::picture() const {
    std::vector<RangeIndex> ordered;
    for (RangeIndex index = tail_; index != kNone; index = ranges_[index].prev) ordered.push_back(index);
    std::reverse(ordered.begin(), ordered.end());
    MemoryPicture picture;
    Bytes end = -1;
    for (const RangeIndex index : ordered)
        for_each_mapped_run(ranges_[index], [&](Bytes start, Bytes size) {
            if (start != end)
                picture.segments.push_back({base_ + static_cast<Address>(start), 0, {0}, 0, false, true,
                    static_cast<std::uint32_t>(picture.blocks.size()), 0});
            const bool live = ranges_[index].list == kLive;
            picture.blocks.push_back({base_ + static_cast<Address>(start), size, 0, live ? BufferId{index} : BufferId{},
                live ? BlockState::active_allocated : BlockState::inactive});
            picture.segments.back().size += size;
            ++picture.segments.back().block_count;
            end = start + size;
        });
    return picture;
}

}  // namespace fragsim
