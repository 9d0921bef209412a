#include "lib/replay/auditor.hpp"

#include <fmt/format.h>

namespace fragsim {

const char* name(AuditRule rule) {
    switch (rule) {
        case AuditRule::overlap: return "overlap";
        case AuditRule::not_reserved: return "not-reserved";
        case AuditRule::misaligned: return "misaligned";
        case AuditRule::too_small: return "too-small";
        case AuditRule::over_capacity: return "over-capacity";
        case AuditRule::wrong_statistics: return "wrong-statistics";
        case AuditRule::released_in_use: return "released-in-use";
        case AuditRule::bad_picture: return "bad-picture";
    }
    return "";
}

// What a policy has before the first op it got by calls of the device, or it took it over from a recording.
Auditor::Auditor(const Trace& trace, const Policy& policy, const LoggedDevice& device, std::optional<Bytes> capacity,
    std::span<const std::pair<BufferId, Placement>> placed)
    : trace_(trace), policy_(policy), device_(device), capacity_(capacity),
      waits_seen_(policy.stats().num_sync_all_streams) {
    if (device.calls().empty()) {
        begin_with(policy.picture());
        return;
    }
    follow_device_calls();
    for (const auto& [buffer, placement] : placed) place(buffer, placement);
    for (const BlockPicture& block : trace.initial.blocks)
        if (block.state == BlockState::active_pending_free) pending_.push_back(block.buffer);
}

void Auditor::begin_with(const MemoryPicture& start) {
    for (const SegmentPicture& segment : start.segments) {
        const Address end = segment.address + static_cast<Address>(segment.size);
        segment.expandable ? map(segment.address, end) : void(segments_[segment.address] = end);
        reserved_bytes_ += segment.size;
    }
    for (const BlockPicture& block : start.blocks) {
        if (block.state == BlockState::inactive) continue;
        const Address end = block.address + static_cast<Address>(block.size);
        live_.insert({block.address, {end, block.buffer}});
        where_[block.buffer.value] = {block.address, end};
        active_bytes_ += block.size;
        requested_bytes_ += block.requested;
        if (block.state == BlockState::active_pending_free) pending_.push_back(block.buffer);
    }
}

void Auditor::observe(const Step& step) {
    op_ = step.op;
    // A policy that waited for all streams has completed every free requested so far.
    if (policy_.stats().num_sync_all_streams != waits_seen_) {
        waits_seen_ = policy_.stats().num_sync_all_streams;
        for (const BufferId buffer : pending_) complete(buffer);
        pending_.clear();
    }
    if (step.kind == EventKind::free_requested) pending_.push_back(step.buffer);
    if (step.kind == EventKind::free || step.kind == EventKind::free_completed) complete(step.buffer);
    follow_device_calls();
    if (step.placement) place(step.buffer, *step.placement);
    check_statistics();
}

void Auditor::place(BufferId buffer, const Placement& placement) {
    const Bytes requested = trace_.buffers[buffer.value].requested;
    const Address start = placement.address, end = start + static_cast<Address>(placement.allocated);
    if (start % static_cast<Address>(policy_.alignment()) != 0)
        find(AuditRule::misaligned, fmt::format("buffer {} at {:#x}", buffer.value, start));
    if (placement.allocated < requested)
        find(AuditRule::too_small,
            fmt::format("buffer {} got {} of {} bytes", buffer.value, placement.allocated, requested));
    where_[buffer.value] = {start, end};
    for_each_memory(start, end, [&](Address from, Address to) { occupy(buffer, from, to); });
    active_bytes_ += placement.allocated;
    requested_bytes_ += requested;
}

void Auditor::complete(BufferId buffer) {
    const auto place = where_.find(buffer.value);
    if (place == where_.end()) return;
    const auto [start, end] = place->second;
    active_bytes_ -= static_cast<Bytes>(end - start);
    requested_bytes_ -= trace_.buffers[buffer.value].requested;
    for_each_memory(start, end, [&](Address from, Address) {
        auto range = live_.lower_bound(from);
        while (range->second.buffer != buffer) ++range;  // where two overlap, two may begin at one address
        live_.erase(range);
    });
    where_.erase(place);
}

void Auditor::occupy(BufferId buffer, Address start, Address end) {
    const auto next = live_.lower_bound(start);
    if (next != live_.end() && next->first < end)
        find(AuditRule::overlap,
            fmt::format("buffers {} and {} at {:#x}", buffer.value, next->second.buffer.value, next->first));
    if (next != live_.begin() && std::prev(next)->second.end > start)
        find(AuditRule::overlap,
            fmt::format("buffers {} and {} at {:#x}", buffer.value, std::prev(next)->second.buffer.value, start));
    const auto covers = [&](const std::map<Address, Address>& ranges) {
        const auto above = ranges.upper_bound(start);
        return above != ranges.begin() && std::prev(above)->second >= end;
    };
    if (!covers(segments_) && !covers(mapped_))
        find(AuditRule::not_reserved, fmt::format("buffer {} at {:#x}", buffer.value, start));
    live_.insert({start, {end, buffer}});
}

// Where the memory behind an address range first was mapped: aliases are looked through.
template <class Visit>
void Auditor::for_each_memory(Address start, Address end, Visit visit) const {
    while (start < end) {
        const auto above = aliases_.upper_bound(start);
        const bool inside = above != aliases_.begin() && std::prev(above)->second.end > start;
        if (!inside) {
            const Address stop = above == aliases_.end() ? end : std::min(end, above->first);
            visit(start, stop);
            start = stop;
            continue;
        }
        const auto& [from, alias] = *std::prev(above);
        const Address stop = std::min(end, alias.end);
        visit(alias.source + (start - from), alias.source + (stop - from));
        start = stop;
    }
}

void Auditor::follow_device_calls() {
    for (; calls_seen_ < device_.calls().size(); ++calls_seen_) {
        const DriverCall& call = device_.calls()[calls_seen_];
        const Address end = call.address + static_cast<Address>(call.bytes);
        const Bytes before = reserved_bytes_;
        switch (call.kind) {
            case DriverCallKind::malloc:
                segments_[call.address] = end;
                reserved_bytes_ += call.bytes;
                break;
            case DriverCallKind::free:
                segments_.erase(call.address);
                reserved_bytes_ -= call.bytes;
                expect_nothing_live(call.address, end);
                break;
            case DriverCallKind::map:
                map(call.address, end);
                reserved_bytes_ += call.bytes;
                break;
            case DriverCallKind::unmap:
                unmap(call.address, end);
                reserved_bytes_ -= call.bytes;
                expect_nothing_live(call.address, end);
                break;
            case DriverCallKind::alias: aliases_[call.address] = {end, call.source}; continue;
            case DriverCallKind::unalias:
                for (const auto& [buffer, place] : where_)
                    if (place.start < end && call.address < place.end)
                        find(AuditRule::released_in_use,
                            fmt::format("alias {:#x} with buffer {}", call.address, buffer));
                aliases_.erase(aliases_.lower_bound(call.address), aliases_.lower_bound(end));
                continue;
            default: continue;  // no memory is got or given back
        }
        // A limit is checked with the size of a segment; mapping then rounds up to whole pages.
        const bool rounded_up = call.kind == DriverCallKind::map && capacity_ && before <= *capacity_;
        if (capacity_ && reserved_bytes_ > before && reserved_bytes_ > *capacity_ && !rounded_up)
            find(AuditRule::over_capacity, fmt::format("{} of {} bytes reserved", reserved_bytes_, *capacity_));
    }
}

void Auditor::map(Address start, Address end) {
    auto next = mapped_.lower_bound(start);
    if (next != mapped_.end() && next->first == end) {
        end = next->second;
        next = mapped_.erase(next);
    }
    if (next != mapped_.begin() && std::prev(next)->second == start)
        std::prev(next)->second = end;
    else
        mapped_[start] = end;
}

void Auditor::unmap(Address start, Address end) {
    const auto above = mapped_.upper_bound(start);
    if (above == mapped_.begin() || std::prev(above)->second < end)
        return find(AuditRule::not_reserved, fmt::format("unmapped {:#x}, where nothing is mapped", start));
    const auto range = std::prev(above);
    const Address range_end = range->second;
    if (range->first == start)
        mapped_.erase(range);
    else
        range->second = start;
    if (end < range_end) mapped_[end] = range_end;
}

void Auditor::expect_nothing_live(Address start, Address end) {
    const auto inside = live_.lower_bound(start);
    if (inside != live_.end() && inside->first < end)
        find(AuditRule::released_in_use,
            fmt::format("memory at {:#x} with buffer {}", start, inside->second.buffer.value));
}

void Auditor::check_statistics() {
    const AllocatorStats& stats = policy_.stats();
    const auto check = [&](const char* what, Bytes said, Bytes is) {
        if (said != is)
            find(AuditRule::wrong_statistics, fmt::format("{} is {}, the ops add up to {}", what, said, is));
    };
    check("reserved_bytes", stats.reserved_bytes.all.current, reserved_bytes_);
    check("active_bytes", stats.active_bytes.all.current, active_bytes_);
    check("requested_bytes", stats.requested_bytes.all.current, requested_bytes_);
    if (stats.active_bytes.all.current + stats.inactive_split_bytes.all.current > stats.reserved_bytes.all.current)
        find(AuditRule::wrong_statistics, "active and inactive split bytes exceed reserved bytes");
}

void Auditor::finish() {
    const MemoryPicture picture = policy_.picture();
    Bytes reserved = 0, active = 0;
    for (const SegmentPicture& segment : picture.segments) {
        reserved += segment.size;
        Address next = segment.address;
        for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
            const BlockPicture& block = picture.blocks[i];
            if (block.address != next)
                find(AuditRule::bad_picture, fmt::format("gap before block {:#x}", block.address));
            next = block.address + static_cast<Address>(block.size);
            if (block.state != BlockState::inactive) {
                active += block.size;
                for_each_memory(block.address, next, [&](Address from, Address) {
                    const auto above = live_.upper_bound(from);
                    if (above == live_.begin() || std::prev(above)->second.end <= from)
                        find(AuditRule::bad_picture, fmt::format("nothing lives at {:#x}", block.address));
                });
            }
        }
        if (next != segment.address + static_cast<Address>(segment.size))
            find(AuditRule::bad_picture, fmt::format("blocks do not fill segment {:#x}", segment.address));
    }
    if (reserved != reserved_bytes_)
        find(AuditRule::bad_picture,
            fmt::format("segments add up to {} bytes, {} are reserved", reserved, reserved_bytes_));
    if (active != active_bytes_)
        find(AuditRule::bad_picture, fmt::format("blocks in use add up to {} bytes, {} are", active, active_bytes_));
}

}  // namespace fragsim
