#include "lib/study/memory_map.hpp"

#include <algorithm>
#include <map>

#include "lib/core/error.hpp"

namespace fragsim {
namespace {

class Mapper {
public:
    Mapper(const Trace& trace, const Result& result, std::uint32_t first_op, std::uint32_t end_op)
        : open_(trace.buffers.size()), map_{first_op, end_op, {}, {}, {}} {
        for (const SegmentPicture& segment : result.start.segments) open_segment(segment.address, segment.size, 0);
        for (const BlockPicture& block : result.start.blocks) {
            if (block.state == BlockState::inactive || !block.buffer) continue;
            const bool waits = block.state == BlockState::active_pending_free;
            open_[block.buffer.value] = {
                block.buffer, block.address, block.size, true, 0, MemoryMap::kNever, waits ? 0 : MemoryMap::kNever};
        }
    }

    void follow(const HistoryEntry& entry, std::uint32_t op) {
        switch (entry.action) {
            case HistoryAction::alloc:
                open_[entry.buffer.value] = {
                    entry.buffer, entry.address, entry.allocated, false, op, MemoryMap::kNever, MemoryMap::kNever};
                break;
            case HistoryAction::free_requested: open_[entry.buffer.value].let_go = op; break;
            case HistoryAction::free_completed: close_block(open_[entry.buffer.value], op); break;
            case HistoryAction::segment_alloc:
            case HistoryAction::segment_map: open_segment(entry.address, entry.bytes, op); break;
            case HistoryAction::segment_free:
            case HistoryAction::segment_unmap: close_segments(entry.address, entry.bytes, op); break;
            case HistoryAction::oom:
            case HistoryAction::rejection: break;
        }
    }

    MemoryMap finish() {
        for (MemoryMap::Block& block : open_) close_block(block, MemoryMap::kNever);
        for (const auto& [address, segment] : segments_) keep(map_.segments, segment);
        find_ranges();
        return std::move(map_);
    }

private:
    template <class Kept>
    void keep(std::vector<Kept>& kept, const Kept& part) {
        if (part.begin < map_.end_op && part.end > map_.first_op && part.bytes > 0) kept.push_back(part);
    }

    void close_block(MemoryMap::Block& block, std::uint32_t op) {
        if (block.bytes == 0) return;
        block.end = op;
        keep(map_.blocks, block);
        block = {};
    }

    void open_segment(Address address, Bytes bytes, std::uint32_t op) {
        segments_[address] = {address, bytes, op, MemoryMap::kNever};
    }

    // Ends what lies in [address, address + bytes), and cuts what reaches beyond it.
    void close_segments(Address address, Bytes bytes, std::uint32_t op) {
        const Address end = address + static_cast<Address>(bytes);
        auto at = segments_.upper_bound(address);
        if (at != segments_.begin()) --at;
        while (at != segments_.end() && at->first < end) {
            const MemoryMap::Segment whole = at->second;
            const Address whole_end = whole.address + static_cast<Address>(whole.bytes);
            if (whole_end <= address) {
                ++at;
                continue;
            }
            at = segments_.erase(at);
            const auto part = [&](Address from, Address to, std::uint32_t until) {
                return MemoryMap::Segment{from, static_cast<Bytes>(to - from), whole.begin, until};
            };
            if (whole.address < address) segments_[whole.address] = part(whole.address, address, MemoryMap::kNever);
            keep(map_.segments, part(std::max(whole.address, address), std::min(whole_end, end), op));
            if (whole_end > end) {
                segments_[end] = part(end, whole_end, MemoryMap::kNever);
                break;
            }
        }
    }

    void find_ranges() {
        std::vector<MemoryMap::Range> all;
        for (const MemoryMap::Segment& segment : map_.segments) all.push_back({segment.address, segment.bytes});
        for (const MemoryMap::Block& block : map_.blocks) all.push_back({block.address, block.bytes});
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
        for (const MemoryMap::Range& range : all) {
            if (!map_.ranges.empty()) {
                MemoryMap::Range& last = map_.ranges.back();
                const Address last_end = last.address + static_cast<Address>(last.bytes);
                if (range.address <= last_end) {
                    const Address end = std::max(last_end, range.address + static_cast<Address>(range.bytes));
                    last.bytes = static_cast<Bytes>(end - last.address);
                    continue;
                }
            }
            map_.ranges.push_back(range);
        }
    }

    std::vector<MemoryMap::Block> open_;              // by buffer; no bytes: not live
    std::map<Address, MemoryMap::Segment> segments_;  // live
    MemoryMap map_;
};

}  // namespace

MemoryMap memory_map(const Trace& trace, const Result& result, std::uint32_t first_op, std::uint32_t end_op) {
    Mapper mapper(trace, result, first_op, end_op);
    std::uint32_t event = 0, op = 0;  // `op`: of `event`, or the next one when the event is none
    for (const HistoryEntry& entry : result.history) {
        for (; event < entry.event; ++event) op += is_op(trace.events[event].kind());
        mapper.follow(entry, op);
    }
    return mapper.finish();
}

std::uint32_t peak_op(const Series& series) {
    FRAGSIM_ASSERT(series.size() > 0);
    return static_cast<std::uint32_t>(
        std::max_element(series.reserved.begin(), series.reserved.end()) - series.reserved.begin());
}

}  // namespace fragsim
