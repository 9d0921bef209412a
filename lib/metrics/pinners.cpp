#include "lib/metrics/pinners.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "lib/core/sizes.hpp"
#include "lib/trace/call_site.hpp"

namespace fragsim {
namespace {

// The op at which each buffer was allocated, for those allocated before `end`; 0: before the recording.
std::vector<std::uint32_t> allocation_ops(const Trace& trace, std::uint32_t end) {
    std::vector<std::uint32_t> ops(trace.buffers.size());
    std::uint32_t op = 0;
    for (const Event event : trace.events) {
        if (op >= end) break;
        if (event.kind() == EventKind::alloc) ops[event.subject] = op;
        op += is_op(event.kind());
    }
    return ops;
}

// Blocks of the same power of two and of about the same age go together.
struct Group {
    std::string site;
    int size_log2 = 0, age_log2 = 0;
    friend auto operator<=>(const Group&, const Group&) = default;
};

int log2_of(std::uint64_t value) { return value == 0 ? 0 : 63 - std::countl_zero(value); }

Group group_of(const Trace& trace, const BlockPicture& block, std::uint32_t age) {
    const bool known = block.buffer && block.buffer.value < trace.buffers.size();
    if (std::string site = known ? call_site(trace, trace.buffers[block.buffer.value].stack) : ""; !site.empty())
        return {std::move(site)};
    return {"", log2_of(static_cast<std::uint64_t>(block.size)), log2_of(age) / 3};
}

}  // namespace

std::vector<Pinner> find_pinners(const Trace& trace, const Policy& policy, const MemoryPicture& picture,
    const Request& asking, std::uint32_t op, std::size_t most) {
    const std::vector<std::uint32_t> allocated_at = allocation_ops(trace, op);
    struct Found {
        Pinner pinner;
        std::set<std::uint32_t> ranges;  // indices of free blocks
    };
    std::map<Group, Found> groups;
    for (const SegmentPicture& segment : picture.segments) {
        if (policy.barrier(segment, asking) != Barrier::none) continue;
        const std::uint32_t end = segment.first_block + segment.block_count;
        for (std::uint32_t i = segment.first_block; i < end; ++i) {
            const BlockPicture& block = picture.blocks[i];
            if (block.state == BlockState::inactive) continue;
            const auto is_free = [&](std::uint32_t k) { return picture.blocks[k].state == BlockState::inactive; };
            const bool before = i > segment.first_block && is_free(i - 1), behind = i + 1 < end && is_free(i + 1);
            if (!before && !behind) continue;
            const bool known = block.buffer && block.buffer.value < allocated_at.size();
            const std::uint32_t at = known ? allocated_at[block.buffer.value] : 0;
            Found& found = groups[group_of(trace, block, op - std::min(op, at))];
            Pinner& pinner = found.pinner;
            pinner.oldest_op = pinner.blocks == 0 ? at : std::min(pinner.oldest_op, at);
            pinner.youngest_op = std::max(pinner.youngest_op, at);
            ++pinner.blocks;
            pinner.bytes += block.size;
            if (before) found.ranges.insert(i - 1);
            if (behind) found.ranges.insert(i + 1);
        }
    }

    std::vector<Pinner> pinners;
    for (auto& [group, found] : groups) {
        Pinner& pinner = found.pinner;
        for (const std::uint32_t range : found.ranges) pinner.free_bytes += picture.blocks[range].size;
        pinner.ranges = static_cast<std::int64_t>(found.ranges.size());
        pinner.call_site = !group.site.empty();
        pinner.who = pinner.call_site
                         ? group.site
                         : format_size(Bytes{1} << group.size_log2) + " to " + format_size(Bytes{2} << group.size_log2);
        pinners.push_back(std::move(pinner));
    }
    std::stable_sort(
        pinners.begin(), pinners.end(), [](const Pinner& a, const Pinner& b) { return a.free_bytes > b.free_bytes; });
    if (pinners.size() > most) pinners.resize(most);
    return pinners;
}

std::vector<Bytes> largest_ranges(
    const Policy& policy, const MemoryPicture& picture, const Request& asking, std::size_t most) {
    std::vector<Bytes> sizes;
    for (const SegmentPicture& segment : picture.segments) {
        if (policy.barrier(segment, asking) != Barrier::none) continue;
        for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i)
            if (picture.blocks[i].state == BlockState::inactive) sizes.push_back(picture.blocks[i].size);
    }
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    if (sizes.size() > most) sizes.resize(most);
    return sizes;
}

}  // namespace fragsim
