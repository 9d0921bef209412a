// One arena, one free list, one rule: the classic fits and TLSF. They differ in the rule alone, the Search.
//
// Rationale: the references that every other allocator is measured against. Approach: the block is cut at its low end,
// neighbours join at once. How memory is got is the same for all:
//   extend   memory is mapped as the arena's top rises, only when no free block fits; a free block at the top counts
//            towards the need. empty_cache unmaps, newest first, the pieces that are free
//   none     the whole arena is there from the first request on
//   segment  each growth is a segment of its own of at least segment_bytes; empty_cache returns whole free ones
// Source: spec/policies.md, section 5. There the arena is always whole (growth=none); `extend` is ours, so that the
// bytes reserved say how high the policy had to go.
#pragma once

#include <algorithm>

#include "lib/policy/block_policy.hpp"
#include "lib/policy/parameters.hpp"

namespace fragsim::fits {

enum class Growth { extend, none, segment };

struct FitConfig {
    Bytes arena;  // at most this much
    Growth growth;
    Bytes segment;    // growth by segments: at least this much
    Bytes align;      // sizes and addresses are multiples of it
    Bytes min_split;  // a smaller rest stays with the block
};

// The parameters that all of them have, and what they say.
std::vector<PolicyParameter> fit_parameters();
FitConfig read_fit_config(const ParameterReader& read, const PolicyContext& context);

// A free block and how much of its low end stays free in front of the new one.
struct Found {
    std::uint32_t block;
    Bytes skip = 0;
};

// Search keeps the free blocks: insert(address, size, block), erase(address, size, block), find(size) -> Found or kNone
// as block, placed(end) after each allocation, largest(), for_each_size(visit).
template <class Search>
class FitPolicy final : public BlockPolicy {
public:
    FitPolicy(const FitConfig& config, Search search, Device& device)
        : BlockPolicy(device, StreamOrder::inserted), config_(config), search_(std::move(search)) {}

    Bytes alignment() const override { return std::min<Bytes>(config_.align, 512); }
    Bytes largest_free() const override { return search_.largest(); }
    void free_sizes(std::vector<Bytes>& out) const override {
        search_.for_each_size([&](Bytes size) { out.push_back(size); });
    }
    void empty_cache() override;

private:
    static constexpr Bytes kPage = 2 * kMiB;

    BlockIndex take(const Request& request) override;
    void retire(BlockIndex block, StreamId) override;

    BlockIndex grow(Bytes size, StreamId stream);
    BlockIndex extend(Bytes size, StreamId stream);
    void insert(BlockIndex b) { search_.insert(block(b).address, block(b).size, b); }
    void erase(BlockIndex b) { search_.erase(block(b).address, block(b).size, b); }

    FitConfig config_;
    Search search_;
    std::optional<Address> range_;  // extend: the reserved range
    SegmentIndex arena_ = kNone;    // extend: the segment of what is mapped of it; kNone: nothing is
    std::vector<Bytes> pieces_;     // extend: mapped one behind the other, each memory of its own
};

template <class Search>
BlockPolicy::BlockIndex FitPolicy<Search>::take(const Request& request) {
    const Bytes size = round_up(request.bytes, config_.align);
    Found found = search_.find(size);
    if (found.block == kNone) {
        found = {grow(size, request.stream), 0};
        if (found.block == kNone) return kNone;
    } else {
        erase(found.block);
    }
    BlockIndex taken = found.block;
    if (found.skip > 0) {
        taken = split(found.block, found.skip);
        insert(found.block);
    }
    if (block(taken).size - size >= config_.min_split) insert(split(taken, size));
    search_.placed(block(taken).end());
    return taken;
}

template <class Search>
void FitPolicy<Search>::retire(BlockIndex b, StreamId) {
    insert(coalesce(b, [&](BlockIndex neighbour) { erase(neighbour); }));
}

// A free block that is in no set.
template <class Search>
BlockPolicy::BlockIndex FitPolicy<Search>::grow(Bytes size, StreamId stream) {
    if (config_.growth == Growth::extend) return extend(size, stream);
    if (config_.growth == Growth::none && (stats_.num_device_alloc > 0 || size > config_.arena)) return kNone;
    const Bytes bytes = config_.growth == Growth::none ? config_.arena : std::max(size, config_.segment);
    if (bytes > config_.arena - stats_.reserved_bytes.all.current) return kNone;
    const std::optional<Address> address = device_.malloc(bytes, stream);
    return address ? add_segment(*address, bytes, stream) : kNone;
}

template <class Search>
BlockPolicy::BlockIndex FitPolicy<Search>::extend(Bytes size, StreamId stream) {
    const Bytes mapped = arena_ == kNone ? 0 : segments()[arena_].size;
    const BlockIndex last = arena_ == kNone ? kNone : last_block(arena_);
    const bool free_top = last != kNone && !block(last).used;
    if (free_top && block(last).size >= size) {  // the search missed it, as TLSF's can
        erase(last);
        return last;
    }
    const Bytes missing = round_up(size - (free_top ? block(last).size : 0), kPage);
    if (missing > config_.arena / kPage * kPage - mapped) return kNone;
    if (!range_) range_ = device_.reserve(round_up(config_.arena, kPage), stream);
    const Address end = *range_ + static_cast<Address>(mapped);
    if (!device_.map(end, missing, missing, stream)) return kNone;
    pieces_.push_back(missing);
    if (arena_ == kNone) {
        const BlockIndex first = add_segment(end, missing, stream);
        arena_ = block(first).segment;
        return first;
    }
    BlockIndex top = extend_segment(arena_, missing);
    if (free_top) {
        erase(last);
        join(last, top);
        top = last;
    }
    return top;
}

template <class Search>
void FitPolicy<Search>::empty_cache() {
    if (config_.growth == Growth::none) return;
    if (config_.growth == Growth::segment) {
        for (std::size_t i = 0; i < segments().size(); ++i) {
            const Segment segment = segments()[i];
            if (segment.first == kNone || segment.used_blocks > 0) continue;
            erase(segment.first);
            remove_segment(segment.first);
            device_.free(segment.address, segment.size, segment.stream);
        }
        return;
    }
    while (!pieces_.empty()) {
        const BlockIndex last = last_block(arena_);
        const Bytes piece = pieces_.back();
        if (block(last).used || block(last).size < piece) break;
        const Address end = block(last).end();
        const bool rest = block(last).size > piece, whole = is_whole_segment(last);
        erase(last);
        shrink_segment(arena_, piece);
        if (rest) insert(last);
        device_.unmap(end - static_cast<Address>(piece), piece, piece, {0});
        pieces_.pop_back();
        if (!rest && whole) arena_ = kNone;
    }
    refresh_split();
}

}  // namespace fragsim::fits
