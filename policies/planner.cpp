// Every buffer at the place an offline plan gave it: how little memory the program could have done with.
//
// Rationale: how low a policy could get that hands out one contiguous range per request and knew when buffers will go.
// It is what the packing finds: an upper bound of the optimum, and the optimum itself where it is the load.
//
// Approach: the lifespans of the whole trace are packed before the first request (planner/packing.hpp); one range of
// the plan's height is got with the first request, each buffer is put at its offset. What the plan leaves out under a
// capacity is out of memory. A request outside the plan (the one that failed in the recorded run) takes the lowest gap
// of the moment, or memory of its own; so does a buffer whose place such a one has taken.
//
// Differences from STAlloc (infinigence/STAlloc @3a9f97f), which follows its plan in a real run: it recognises requests
// by their index and falls back to the caching allocator where they differ from the plan; here every one is known.
#include "policies/planner/packing.hpp"

#include "lib/policy/address_ordered_blocks.hpp"
#include "lib/policy/block_policy.hpp"
#include "lib/policy/parameters.hpp"

namespace fragsim {
namespace {

// cudaMalloc takes whole pages (spec/measured-h200.md, section 2): a range that ends in the last, incomplete one below
// the capacity would be refused, and every buffer with it.
constexpr Bytes kPage = 2 * kMiB;
constexpr Bytes kLargestAlignment = kGiB;  // rounding up to more would overflow with the largest requests

class PlannedBlocks final : public BlockPolicy {
public:
    PlannedBlocks(planner::Plan plan, Bytes align, Device& device)
        : BlockPolicy(device, StreamOrder::inserted), plan_(std::move(plan)), align_(align) {}

    void expect(BufferId buffer) { expected_ = buffer; }  // the next request's

    Bytes alignment() const override { return std::min<Bytes>(align_, 512); }
    Bytes largest_free() const override { return free_.largest(); }
    void free_sizes(std::vector<Bytes>& out) const override {
        free_.for_each([&](const AddressOrderedBlocks::Entry& entry) { out.push_back(entry.size); });
    }
    void empty_cache() override;

private:
    BlockIndex take(const Request& request) override;
    void retire(BlockIndex block, StreamId) override;
    // The plan knows of every free that waits; only what is outside of it can gain by completing them.
    bool make_room() override { return !is_planned() && BlockPolicy::make_room(); }

    bool is_planned() const { return expected_.value < plan_.offsets.size(); }
    BlockIndex carve(BlockIndex block, Bytes skip, Bytes size);
    void insert(BlockIndex b) { free_.insert(block(b).address, block(b).size, b); }
    void erase(BlockIndex b) { free_.erase(block(b).address); }

    planner::Plan plan_;
    Bytes align_;
    BufferId expected_;
    std::optional<Address> range_;  // where offset 0 is; none: not got, or given back
    AddressOrderedBlocks free_;
};

BlockPolicy::BlockIndex PlannedBlocks::take(const Request& request) {
    const Bytes size = round_up(request.bytes, align_);
    if (is_planned()) {
        const Bytes offset = plan_.offsets[expected_.value];
        if (offset == planner::Plan::kLeftOut) return kNone;
        if (!range_) {
            range_ = device_.malloc(plan_.height, request.stream);
            if (!range_) return kNone;
            insert(add_segment(*range_, plan_.height, request.stream));
        }
        const Address address = *range_ + static_cast<Address>(offset);
        const AddressOrderedBlocks::Entry* below = free_.at_or_below(address);
        if (below != nullptr &&
            below->address + static_cast<Address>(below->size) >= address + static_cast<Address>(size))
            return carve(below->block, static_cast<Bytes>(address - below->address), size);
    }
    if (const BlockIndex gap = free_.first_fit(size); gap != kNone) return carve(gap, 0, size);
    const std::optional<Address> own = device_.malloc(size, request.stream);
    return own ? add_segment(*own, size, request.stream) : kNone;
}

// Takes `size` bytes of a free block, `skip` above its low end.
BlockPolicy::BlockIndex PlannedBlocks::carve(BlockIndex b, Bytes skip, Bytes size) {
    erase(b);
    if (skip > 0) {
        const BlockIndex high = split(b, skip);
        insert(b);
        b = high;
    }
    if (block(b).size > size) insert(split(b, size));
    return b;
}

void PlannedBlocks::retire(BlockIndex b, StreamId) {
    insert(coalesce(b, [&](BlockIndex neighbour) { erase(neighbour); }));
}

void PlannedBlocks::empty_cache() {
    for (std::size_t i = 0; i < segments().size(); ++i) {
        const Segment segment = segments()[i];
        if (segment.first == kNone || segment.used_blocks > 0) continue;
        erase(segment.first);
        remove_segment(segment.first);
        device_.free(segment.address, segment.size, segment.stream);
        if (range_ == segment.address) range_.reset();
    }
}

// Tells the blocks below which buffer a request is for.
class Planner final : public Policy {
public:
    Planner(planner::Plan plan, Bytes align, Device& device) : blocks_(std::move(plan), align, device) {}

    std::optional<Placement> allocate(BufferId buffer, const Request& request) override {
        blocks_.expect(buffer);
        return blocks_.allocate(buffer, request);
    }
    void free(BufferId buffer) override { blocks_.free(buffer); }
    void free_requested(BufferId buffer) override { blocks_.free_requested(buffer); }
    void free_completed(BufferId buffer) override { blocks_.free_completed(buffer); }
    void empty_cache() override { blocks_.empty_cache(); }
    Bytes alignment() const override { return blocks_.alignment(); }
    const AllocatorStats& stats() const override { return blocks_.stats(); }
    Bytes largest_free() const override { return blocks_.largest_free(); }
    void free_sizes(std::vector<Bytes>& out) const override { blocks_.free_sizes(out); }
    MemoryPicture picture() const override { return blocks_.picture(); }

private:
    PlannedBlocks blocks_;
};

planner::Plan plan_for(
    const PolicyContext& context, Bytes align, planner::Algorithm algorithm, std::int64_t exact_nodes) {
    std::vector<planner::Item> items;
    if (context.lifespans != nullptr)
        for (const Lifespan& life : *context.lifespans)
            items.push_back({life.begin, life.end, round_up(life.bytes, align)});
    planner::PackOptions options{context.limits.bound(), exact_nodes};
    if (options.capacity) *options.capacity -= *options.capacity % kPage;
    return planner::pack(items, algorithm, options);
}

}  // namespace

PolicyInfo planner_policy() {
    PolicyInfo info;
    info.name = "planner";
    info.summary =
        "offline packing with every lifespan known: how little memory the program could have done with,\n"
        "as far as the packing finds it. One range, every buffer at its planned offset.";
    info.reference = "infinigence/STAlloc 09/2025; the orders of TensorFlow Lite; the search of google/minimalloc";
    info.offline = true;
    info.parameters = {
        {"algorithm", "auto|greedy-size|greedy-size-best|greedy-start|greedy-area|greedy-contention|layered|exact",
            "auto", "order in which buffers are placed; auto: the lowest plan of several; exact: searches longer"},
        {"align_bytes", "bytes", "512", "sizes and offsets are multiples of it; a power of two up to 1GiB"},
        {"exact_nodes", "count", "1000000", "algorithm=exact: placements tried before it settles for the best so far"},
    };
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("planner", known, given);
        const Bytes align = read.power_of_two("align_bytes", 1);
        if (align > kLargestAlignment) read.refuse("align_bytes", "1GiB or less");
        const auto algorithm = read.choice<planner::Algorithm>("algorithm");
        const std::int64_t nodes = read.count("exact_nodes", 0, 1'000'000'000'000);
        return std::make_unique<Planner>(plan_for(context, align, algorithm, nodes), align, context.device);
    };
    return info;
}

}  // namespace fragsim
