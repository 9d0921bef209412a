#include "traces/pytorch_recorded_memory.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace fragsim {
namespace {

constexpr Bytes kMaxUnsplit = kMiB;  // a large block keeps a remainder up to this

Address end_of(Address address, Bytes size) { return address + static_cast<Address>(size); }

}  // namespace

RecordedMemory::RecordedMemory(const Trace& trace, const AllocatorRules& rules)
    : trace_(trace), rules_(rules), block_of_(trace.buffers.size(), in_use_.end()) {
    for (const SegmentPicture& segment : trace.initial.segments) {
        segments_.emplace(segment.address, Segment{segment.size, segment.stream, segment.small, segment.expandable});
        reserved_ += segment.size;
    }
    for (const BlockPicture& block : trace.initial.blocks)
        if (block.state != BlockState::inactive) put(in_use_.end(), block.address, {block.size, block.buffer});
}

void RecordedMemory::advance_to(std::uint32_t index) {
    for (; next_segment_event_ <= index && next_segment_event_ < trace_.segment_events.size(); ++next_segment_event_) {
        const SegmentEvent& event = trace_.segment_events[next_segment_event_];
        for (; next_event_ < event.before_event; ++next_event_) apply(trace_.events[next_event_]);
        if (next_segment_event_ == index) return;
        apply(event);
    }
}

void RecordedMemory::apply(const SegmentEvent& event) {
    switch (event.kind) {
        case SegmentEventKind::alloc:
            segments_[event.address] = {event.bytes, event.stream, event.bytes == kSmallSegment, false};
            reserved_ += event.bytes;
            break;
        case SegmentEventKind::free:
            segments_.erase(event.address);
            reserved_ -= event.bytes;
            break;
        case SegmentEventKind::map: map(event); break;
        case SegmentEventKind::unmap: unmap(event); break;
    }
}

// A small request maps one page of 2 MiB, a large one pages of 20 MiB. The range joins its neighbours.
void RecordedMemory::map(const SegmentEvent& event) {
    reserved_ += event.bytes;
    Segment added{event.bytes, event.stream, event.bytes == kSmallSegment, true};
    Address address = event.address;
    const auto joins = [&](const Segment& other) {
        return other.expandable && other.stream == added.stream && other.small == added.small;
    };
    auto after = segments_.lower_bound(address);
    if (after != segments_.end() && after->first == end_of(address, event.bytes) && joins(after->second)) {
        added.size += after->second.size;
        after = segments_.erase(after);
    }
    if (after != segments_.begin()) {
        const auto before = std::prev(after);
        if (end_of(before->first, before->second.size) == address && joins(before->second)) {
            before->second.size += added.size;
            return;
        }
    }
    segments_[address] = added;
}

void RecordedMemory::unmap(const SegmentEvent& event) {
    reserved_ -= event.bytes;
    const auto found = segment_of(event.address);
    if (found == segments_.end()) return;
    const auto [address, whole] = *found;
    segments_.erase(found);
    const Address end = end_of(event.address, event.bytes), whole_end = end_of(address, whole.size);
    const auto keep = [&](Address from, Address to) {
        if (from >= to) return;
        Segment part = whole;
        part.size = static_cast<Bytes>(to - from);
        segments_[from] = part;
    };
    keep(address, event.address);
    keep(end, whole_end);
}

void RecordedMemory::apply(Event event) {
    switch (event.kind()) {
        case EventKind::alloc:
            late_.clear();
            allocate({event.subject});
            break;
        case EventKind::free:
            late_.clear();
            take({event.subject});
            break;
        case EventKind::free_completed:
            if (const auto block = take({event.subject})) late_.push_back(*block);
            break;
        default: late_.clear(); break;
    }
}

// Small blocks, and those of expandable segments, are always cut to size.
void RecordedMemory::allocate(BufferId buffer) {
    const Address address = trace_.buffers[buffer.value].recorded_address;
    Bytes size = round_request(trace_.buffers[buffer.value].requested, rules_.roundup);
    const auto after = in_use_.upper_bound(address);
    const auto segment = size <= kSmallSize ? segments_.end() : segment_of(address);
    if (segment != segments_.end() && !segment->second.small && !segment->second.expandable) {
        Address limit = end_of(segment->first, segment->second.size);
        if (after != in_use_.end()) limit = std::min(limit, after->first);
        const Bytes range = static_cast<Bytes>(limit - address);
        const bool split =
            range - size > kMaxUnsplit && (rules_.max_split_size <= 0 || size < rules_.max_split_size);
        if (!split) size = range;
    }
    put(after, address, {size, buffer});
}

void RecordedMemory::put(Blocks::iterator hint, Address address, InUse block) {
    const std::size_t before = in_use_.size();
    const auto at = in_use_.emplace_hint(hint, address, block);
    if (in_use_.size() == before) {  // a block that nobody freed
        if (at->second.buffer) block_of_[at->second.buffer.value] = in_use_.end();
        at->second = block;
    }
    if (block.buffer) block_of_[block.buffer.value] = at;
}

std::optional<RecordedMemory::Block> RecordedMemory::take(BufferId buffer) {
    const auto at = block_of_[buffer.value];
    if (at == in_use_.end()) return {};
    const Block block{at->first, at->second.size};
    in_use_.erase(at);
    block_of_[buffer.value] = in_use_.end();
    return block;
}

std::map<Address, RecordedMemory::Segment>::const_iterator RecordedMemory::segment_of(Address address) const {
    const auto after = segments_.upper_bound(address);
    if (after == segments_.begin()) return segments_.end();
    const auto at = std::prev(after);
    return address < end_of(at->first, at->second.size) ? at : segments_.end();
}

std::vector<RecordedMemory::FreeRange> RecordedMemory::free_ranges(const View& view) const {
    std::vector<Block> blocks;
    for (const auto& [address, block] : in_use_)
        if (std::find(view.also_free.begin(), view.also_free.end(), address) == view.also_free.end())
            blocks.push_back({address, block.size});
    if (view.late_in_use) {
        blocks.insert(blocks.end(), late_.begin(), late_.end());
        std::sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.address < b.address; });
    }

    std::vector<FreeRange> ranges;
    auto block = blocks.begin();
    for (const auto& [address, segment] : segments_) {
        const Address end = end_of(address, segment.size);
        const bool gone = std::any_of(view.released.begin(), view.released.end(),
            [start = address](const Release& release) { return release.address == start; });
        Address at = address;
        const auto free_to = [&](Address limit) {
            if (at >= limit || gone) return;
            ranges.push_back({at, static_cast<Bytes>(limit - at), segment.stream, segment.small, segment.expandable,
                !segment.expandable && at == address && limit == end, address});
        };
        while (block != blocks.end() && block->address < address) ++block;
        for (; block != blocks.end() && block->address < end; ++block) {
            free_to(block->address);
            at = std::max(at, end_of(block->address, block->size));
        }
        free_to(end);
    }
    std::sort(ranges.begin(), ranges.end(), [](const FreeRange& a, const FreeRange& b) {
        return std::tuple(a.stream.value, a.size, a.address) < std::tuple(b.stream.value, b.size, b.address);
    });
    return ranges;
}

bool RecordedMemory::serves(Bytes rounded, StreamId stream, const View& view) const {
    const bool small = rounded <= kSmallSize;
    for (const FreeRange& range : free_ranges(view)) {
        if (range.stream != stream || range.small != small || range.size < rounded) continue;
        if (rules_.max_split_size <= 0) return true;
        // Oversize blocks serve oversize requests only, and only close ones; nothing beyond the best fit is tried.
        if (rounded < rules_.max_split_size) return range.size < rules_.max_split_size;
        return range.size < rounded + kLargeSegment;
    }
    return false;
}

std::vector<Release> RecordedMemory::release_cached(const View& view) const {
    const std::vector<FreeRange> ranges = free_ranges(view);
    std::vector<Release> releases;
    for (const bool small : {false, true}) {
        for (const FreeRange& range : ranges)
            if (range.small == small && range.whole)
                releases.push_back({SegmentEventKind::free, range.address, range.size});
        const Bytes page = small ? kSmallSegment : kLargeSegment;
        for (const FreeRange& range : ranges) {
            if (range.small != small || !range.expandable) continue;
            const auto before = static_cast<Bytes>(range.address - range.origin);
            const Bytes first = round_up(before, page), last = (before + range.size) / page * page;
            if (first < last) releases.push_back({SegmentEventKind::unmap, end_of(range.origin, first), last - first});
        }
    }
    return releases;
}

std::vector<Release> RecordedMemory::release_oversize(
    Bytes rounded, StreamId stream, const View& view, bool& enough) const {
    enough = false;
    if (rules_.max_split_size <= 0 || rounded <= kSmallSize) return {};
    std::vector<FreeRange> ranges = free_ranges(view);
    std::erase_if(ranges, [&](const FreeRange& range) { return range.small || range.stream != stream; });
    const Bytes need = std::max(rounded, rules_.max_split_size);
    const auto at = std::find_if(ranges.begin(), ranges.end(), [&](const FreeRange& r) { return r.size >= need; });
    if (at != ranges.end() && !at->expandable) {
        enough = true;
        return {{SegmentEventKind::free, at->address, at->size}};
    }
    std::vector<Release> releases;
    Bytes got = 0;
    for (auto range = std::make_reverse_iterator(at);
         range != ranges.rend() && got < need && range->size >= rules_.max_split_size; ++range) {
        if (range->expandable) continue;
        got += range->size;
        releases.push_back({SegmentEventKind::free, range->address, range->size});
    }
    enough = got >= need;
    return releases;
}

}  // namespace fragsim
