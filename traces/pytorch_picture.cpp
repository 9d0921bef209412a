#include "traces/pytorch_picture.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace fragsim {
namespace {

BlockState state_of(RecordedState state) {
    switch (state) {
        case RecordedState::active_allocated: return BlockState::active_allocated;
        case RecordedState::active_pending_free: return BlockState::active_pending_free;
        case RecordedState::inactive:
        case RecordedState::unknown: break;
    }
    return BlockState::inactive;
}

// The blocks with the addresses they have: older snapshots give only the order. Nothing if they do not tile the
// segment; `problem` says why.
std::vector<BlockPicture> place_blocks(
    const SegmentRecord& segment, std::span<const BlockRecord> blocks, std::string_view& problem) {
    std::vector<BlockPicture> placed;
    placed.reserve(blocks.size());
    const Address end = segment.address + static_cast<Address>(segment.size);
    Address at = segment.address;
    for (const BlockRecord& block : blocks) {
        if (block.state == RecordedState::unknown) problem = "block of unknown state";
        if (block.size <= 0 || static_cast<Address>(block.size) > end - at ||
            (block.address != kNoAddress && block.address != at))
            problem = "blocks do not tile their segment";
        if (!problem.empty()) return {};
        Bytes requested = 0;
        if (block.state != RecordedState::inactive) {
            requested = block.requested != kNoSize ? block.requested : block.last_user;
            if (requested <= 0 || requested > block.size) requested = block.size;
        }
        placed.push_back({at, block.size, requested, {}, state_of(block.state)});
        at += static_cast<Address>(block.size);
    }
    if (at != end) {
        problem = "blocks do not tile their segment";
        return {};
    }
    return placed;
}

}  // namespace

FinalPicture read_picture(const Snapshot& snapshot, int device, TraceBuilder& builder, Diagnostics& diagnostics) {
    const SnapshotRecords& records = snapshot.records;
    std::vector<std::uint32_t> order;
    for (const std::uint32_t number : snapshot.segments)
        if (records.segments[number].device == device) order.push_back(number);
    std::stable_sort(order.begin(), order.end(),
        [&](std::uint32_t a, std::uint32_t b) { return records.segments[a].address < records.segments[b].address; });

    FinalPicture result;
    if (order.empty()) return result;
    MemoryPicture& picture = result.picture.emplace();
    Address end_of_last = 0;
    for (const std::uint32_t number : order) {
        const SegmentRecord& segment = records.segments[number];
        std::string_view problem;
        std::vector<BlockPicture> blocks;
        if (segment.address == kNoAddress || segment.size <= 0)
            problem = "segment without address or size";
        else if (segment.address < end_of_last)
            problem = "segments overlap";
        else
            blocks = place_blocks(segment, {records.blocks.data() + segment.first_block, segment.block_count}, problem);
        if (!problem.empty()) {
            diagnostics.count(problem, fmt::format("device {}, segment {:#x}", device, segment.address));
            continue;
        }
        end_of_last = segment.address + static_cast<Address>(segment.size);
        const std::uint16_t pool = segment.pool == 0 ? std::uint16_t{0} : builder.pool(records.pool(segment.pool - 1u));
        picture.segments.push_back({segment.address, segment.size, {builder.stream(records.stream(segment.stream))},
            pool, segment.small, segment.expandable, static_cast<std::uint32_t>(picture.blocks.size()),
            static_cast<std::uint32_t>(blocks.size())});
        picture.blocks.insert(picture.blocks.end(), blocks.begin(), blocks.end());
        for (std::uint32_t i = 0; i < segment.block_count; ++i)
            result.stacks.push_back(records.blocks[segment.first_block + i].stack);
    }
    return result;
}

const SegmentPicture* segment_at(const MemoryPicture& picture, Address address) {
    const auto after = std::upper_bound(picture.segments.begin(), picture.segments.end(), address,
        [](Address value, const SegmentPicture& segment) { return value < segment.address; });
    if (after == picture.segments.begin()) return nullptr;
    const SegmentPicture& segment = *(after - 1);
    return address - segment.address < static_cast<Address>(segment.size) ? &segment : nullptr;
}

}  // namespace fragsim
