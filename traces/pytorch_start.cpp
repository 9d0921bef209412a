#include "traces/pytorch_start.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "traces/pickle.hpp"

namespace fragsim {
namespace {

constexpr Bytes kMaxUnsplit = kMiB;  // a large block keeps a remainder up to this

Address end_of(Address address, Bytes size) { return address + static_cast<Address>(size); }

// Mapped memory by address, changed backwards in time.
class Segments {
public:
    Segments(const StartInput& input, Diagnostics& diagnostics) : device_(input.device), diagnostics_(diagnostics) {
        if (input.final != nullptr)
            for (const SegmentPicture& segment : input.final->segments) segments_.emplace(segment.address, segment);
    }

    void undo(const SegmentEvent& event) {
        switch (event.kind) {
            case SegmentEventKind::alloc:
            case SegmentEventKind::map: remove(event); break;
            case SegmentEventKind::free: insert(event, false); break;
            case SegmentEventKind::unmap: insert(event, true); break;
        }
    }

    std::map<Address, SegmentPicture>& all() { return segments_; }

    // The segment that contains `address`, or end().
    std::map<Address, SegmentPicture>::iterator containing(Address address) {
        auto at = segments_.upper_bound(address);
        if (at == segments_.begin()) return segments_.end();
        --at;
        return address < end_of(at->first, at->second.size) ? at : segments_.end();
    }

private:
    void contradicts(const SegmentEvent& event) {
        diagnostics_.count("segment entry that contradicts the segments at the end",
            fmt::format("device {}, segment {:#x}", device_, event.address));
    }

    // Cuts the event's range out of the segment that contains it.
    void remove(const SegmentEvent& event) {
        const auto at = containing(event.address);
        const Address end = end_of(event.address, event.bytes);
        if (at == segments_.end() || end > end_of(at->first, at->second.size)) return contradicts(event);
        const SegmentPicture whole = at->second;
        const Address whole_end = end_of(whole.address, whole.size);
        segments_.erase(at);
        if (whole.address < event.address) {
            SegmentPicture front = whole;
            front.size = static_cast<Bytes>(event.address - whole.address);
            segments_.emplace(front.address, front);
        }
        if (end < whole_end) {
            SegmentPicture back = whole;
            back.address = end;
            back.size = static_cast<Bytes>(whole_end - end);
            segments_.emplace(back.address, back);
        }
    }

    // Expandable ranges join their neighbours of the same stream and take over what is known of them.
    void insert(const SegmentEvent& event, bool expandable) {
        const Address end = end_of(event.address, event.bytes);
        auto after = segments_.lower_bound(event.address);
        const bool clash =
            containing(event.address) != segments_.end() || (after != segments_.end() && after->first < end);
        if (clash) return contradicts(event);

        SegmentPicture added{event.address, event.bytes, event.stream, 0, false, expandable, 0, 0};
        // A segment of 2 MiB serves small blocks, every larger one large blocks. Expandable memory is released in
        // pages of 2 or 20 MiB.
        added.small = expandable ? event.bytes % kLargeSegment != 0 : event.bytes == kSmallSegment;
        if (expandable) {
            const auto joins = [&](const SegmentPicture& other) {
                return other.expandable && other.stream == event.stream;
            };
            if (after != segments_.end() && after->first == end && joins(after->second)) {
                const Bytes size = added.size + after->second.size;
                added = after->second;
                added.address = event.address;
                added.size = size;
                after = segments_.erase(after);
            }
            if (after != segments_.begin()) {
                SegmentPicture& before = std::prev(after)->second;
                if (end_of(before.address, before.size) == event.address && joins(before)) {
                    before.size += added.size;
                    return;
                }
            }
        }
        segments_.emplace(added.address, added);
    }

    int device_;
    Diagnostics& diagnostics_;
    std::map<Address, SegmentPicture> segments_;
};

// A block whose end is in doubt, with the window in which an allocation would show it.
struct Doubt {
    Address rounded_end;
    std::size_t block;
    Address end;  // found so far; 0: none
};

// The lowest allocation in each window, made while its block was still in use. Windows do not overlap.
void look_for_ends(
    std::span<const EntryRecord> entries, const std::vector<StartBlock>& blocks, std::vector<Doubt>& doubts) {
    if (doubts.empty()) return;
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
        const EntryRecord& entry = entries[i];
        if (entry.kind() != Action::alloc) continue;
        const auto after = std::upper_bound(doubts.begin(), doubts.end(), entry.address,
            [](Address address, const Doubt& doubt) { return address < doubt.rounded_end; });
        if (after == doubts.begin()) continue;
        Doubt& doubt = *(after - 1);
        if (entry.address - doubt.rounded_end > static_cast<Address>(kMaxUnsplit) ||
            i >= blocks[doubt.block].completed_at)
            continue;
        if (doubt.end == 0 || entry.address < doubt.end) doubt.end = entry.address;
    }
}

// Sizes for the blocks that are known by their request only. `blocks` is by address, `segment_of` parallel to it.
void settle_sizes(
    const StartInput& input, std::vector<StartBlock>& blocks, const std::vector<const SegmentPicture*>& segment_of) {
    std::vector<Doubt> doubts;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        StartBlock& block = blocks[i];
        if (block.size != kNoSize) continue;
        const SegmentPicture& segment = *segment_of[i];
        block.size = round_request(block.requested, input.rules.roundup);
        if (segment.small || segment.expandable) continue;
        Address limit = end_of(segment.address, segment.size);
        if (i + 1 < blocks.size() && segment_of[i + 1] == &segment) limit = blocks[i + 1].address;
        const Address rounded_end = end_of(block.address, block.size);
        if (rounded_end >= limit) continue;
        if (limit - rounded_end <= static_cast<Address>(kMaxUnsplit))
            block.size = static_cast<Bytes>(limit - block.address);
        else
            doubts.push_back({rounded_end, i, 0});
    }
    look_for_ends(input.entries, blocks, doubts);
    for (const Doubt& doubt : doubts)
        if (doubt.end != 0) blocks[doubt.block].size = static_cast<Bytes>(doubt.end - blocks[doubt.block].address);
}

[[noreturn]] void overlap(int device, Address address) {
    throw Malformed{fmt::format("device {}: the blocks in use at the start overlap at {:#x}", device, address),
        "the snapshot is damaged, or its history was filtered"};
}

}  // namespace

MemoryPicture rebuild_start(const StartInput& input, std::vector<StartBlock> blocks, Diagnostics& diagnostics) {
    Segments segments(input, diagnostics);
    const std::vector<SegmentEvent>& events = input.trace.segment_events;
    std::for_each(events.rbegin(), events.rend(), [&](const SegmentEvent& event) { segments.undo(event); });

    std::sort(
        blocks.begin(), blocks.end(), [](const StartBlock& a, const StartBlock& b) { return a.address < b.address; });
    for (const StartBlock& block : blocks) {
        if (segments.containing(block.address) != segments.all().end()) continue;
        diagnostics.count("block in use at the start that lies in no segment",
            fmt::format("device {}, address {:#x}", input.device, block.address));
        const Bytes size = block.size != kNoSize ? block.size : round_request(block.requested, input.rules.roundup);
        const auto after = segments.all().upper_bound(block.address);
        if (after != segments.all().end() && after->first < end_of(block.address, size))
            overlap(input.device, block.address);
        segments.all().emplace(block.address,
            SegmentPicture{block.address, size, {block.stream}, block.pool, size <= kSmallSize, false, 0, 0});
    }
    std::vector<const SegmentPicture*> segment_of;
    for (const StartBlock& block : blocks) segment_of.push_back(&segments.containing(block.address)->second);
    settle_sizes(input, blocks, segment_of);

    // Lay the blocks out; what lies between them is free.
    MemoryPicture picture;
    std::size_t next = 0;
    for (auto& [address, segment] : segments.all()) {
        segment.first_block = static_cast<std::uint32_t>(picture.blocks.size());
        const Address end = end_of(address, segment.size);
        Address at = address;
        const auto fill_to = [&](Address limit) {
            if (at < limit) picture.blocks.push_back({at, static_cast<Bytes>(limit - at), 0, {}, BlockState::inactive});
            at = limit;
        };
        for (; next < blocks.size() && blocks[next].address < end; ++next) {
            const StartBlock& block = blocks[next];
            if (block.address < at || end_of(block.address, block.size) > end) overlap(input.device, block.address);
            fill_to(block.address);
            picture.blocks.push_back({block.address, block.size, block.requested, block.buffer, block.state});
            at = end_of(block.address, block.size);
            if (segment.pool == 0) segment.pool = block.pool;
        }
        fill_to(end);
        segment.block_count = static_cast<std::uint32_t>(picture.blocks.size()) - segment.first_block;
        picture.segments.push_back(segment);
    }
    return picture;
}

}  // namespace fragsim
