#include "lib/metrics/oom.hpp"

#include <algorithm>
#include <vector>

#include "lib/metrics/fragmentation.hpp"

namespace fragsim {
namespace {

constexpr Bytes kPage = 2 * kMiB;

Bytes whole_pages(const BlockPicture& block) {
    const auto page = static_cast<Address>(kPage);
    const Address first = (block.address + page - 1) / page,
                  last = (block.address + static_cast<Address>(block.size)) / page;
    return last > first ? static_cast<Bytes>(last - first) * kPage : 0;
}

}  // namespace

const char* name(OomCause cause) {
    switch (cause) {
        case OomCause::capacity: return "capacity";
        case OomCause::internal: return "internal";
        case OomCause::unreleased: return "unreleased";
        case OomCause::stream_pending: return "stream_pending";
        case OomCause::other_size_class: return "other_size_class";
        case OomCause::remappable: return "remappable";
        case OomCause::compaction: return "compaction";
        case OomCause::policy_limit: return "policy_limit";
        case OomCause::rejected: return "rejected";
        case OomCause::other: return "other";
    }
    return "";
}

Oom attribute_oom(const Policy& policy, std::uint32_t op, const Request& request, const Bounds& bounds, bool rejected) {
    const std::optional<Bytes> capacity = bounds.reserved;
    const Bytes requested = request.bytes;
    const AllocatorStats& stats = policy.stats();
    Oom oom{};
    oom.op = op;
    oom.stream = request.stream;
    oom.requested = requested;
    oom.rounded = requested > (Bytes{1} << 60) ? requested : policy.rounded(requested);  // larger sizes overflow
    oom.reserved = stats.reserved_bytes.all.current;
    oom.allocated = stats.allocated_bytes.all.current;
    oom.active = stats.active_bytes.all.current;
    oom.live_requested = stats.requested_bytes.all.current;

    Bytes pages = 0, largest_of_other_sizes = 0;
    Bytes largest_once_complete = 0, releasable_once_complete = 0;  // as if no free waited for a stream
    const MemoryPicture picture = policy.picture();
    for (const SegmentPicture& segment : picture.segments) {
        Bytes run = 0;
        const Barrier barrier = policy.barrier(segment, request);
        const bool usable = barrier == Barrier::none, releases = barrier != Barrier::other_pool || segment.pool == 0;
        for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
            const BlockPicture& block = picture.blocks[i];
            if (block.state == BlockState::active_pending_free) oom.live_requested -= block.requested;
            run = block.state == BlockState::active_allocated ? 0 : run + block.size;
            if (usable) largest_once_complete = std::max(largest_once_complete, run);
            if (run == segment.size && releases) releasable_once_complete += run;
            if (block.state != BlockState::inactive) continue;
            oom.free_total += block.size;
            pages += whole_pages(block);
            if (segment.block_count == 1) oom.releasable += block.size;
            if (usable) oom.largest_free = std::max(oom.largest_free, block.size);
            if (barrier == Barrier::other_size_class)
                largest_of_other_sizes = std::max(largest_of_other_sizes, block.size);
        }
    }

    std::vector<Bytes> sizes;
    policy.free_sizes(sizes);
    const FreeSpace free(std::move(sizes));
    oom.external_fragmentation = free.external();
    oom.unusable_index = free.unusable_index(oom.rounded);
    oom.unusable_index_blocks = free.unusable_index_blocks(oom.rounded);
    oom.fragmentation_index = free.fragmentation_index(oom.rounded);

    const Bytes device_free = capacity ? *capacity - oom.reserved : 0;
    oom.device_free = capacity ? device_free : -1;
    oom.fits_if_compacted = device_free + oom.free_total >= oom.rounded;
    oom.shortfall = std::max<Bytes>(0, oom.rounded - std::max(oom.largest_free, device_free));
    // The device gives whole pages; where nothing can be added to what it has left, that is no cause.
    const auto would_do = [&](Bytes more) { return more > 0 && (device_free + more) / kPage * kPage >= oom.rounded; };
    const auto beyond = [&](std::optional<Bytes> bound) { return bound && requested > *bound - oom.live_requested; };
    oom.cause = beyond(bounds.used) || beyond(capacity)                                      ? OomCause::capacity
                : rejected                                                                   ? OomCause::rejected
                : !capacity || device_free >= round_up(oom.rounded, kPage)                   ? OomCause::policy_limit
                : oom.rounded > *capacity - oom.allocated                                    ? OomCause::internal
                : would_do(oom.releasable)                                                   ? OomCause::unreleased
                : largest_once_complete >= oom.rounded || would_do(releasable_once_complete) ? OomCause::stream_pending
                : largest_of_other_sizes >= oom.rounded ? OomCause::other_size_class
                : would_do(pages)                       ? OomCause::remappable
                : oom.fits_if_compacted                 ? OomCause::compaction
                                                        : OomCause::other;
    return oom;
}

}  // namespace fragsim
