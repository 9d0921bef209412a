// RMM's arena: one range for the process, cut into superblocks that streams take for themselves.
//
// Rationale: threads and streams should not meet at one free list. Approach: a superblock of at least 1 MiB belongs to
// one stream, which serves its small requests from it by first fit; large requests are served from the superblocks that
// belong to nobody. Only when nothing is left do all streams give their superblocks back, after the device was waited
// for. Because the superblocks of an owner are searched in address order and each by first fit, an owner's free blocks
// are one list by address here.
// Source: spec/policies.md, section 3.2 (rapidsai/rmm, 07/2026: arena_memory_resource).
// Not modelled: size_classes (a compile option upstream), superblocks above 1 TiB.
//
//   arena  |superblock, stream 0 |superblock, stream 1|superblock, nobody's                    |
//          [block|block|.........][block|.............][block|..................................]
#include <algorithm>

#include "lib/policy/address_ordered_blocks.hpp"
#include "lib/policy/block_policy.hpp"
#include "lib/policy/parameters.hpp"
#include "policies/rmm/own_settings.hpp"

namespace fragsim {
namespace {

class Arena final : public BlockPolicy {
public:
    static constexpr Bytes kAlign = 256, kSuperblock = kMiB;

    Arena(Bytes bytes, Device& device) : BlockPolicy(device, StreamOrder::own) {
        const std::optional<Address> address = device_.malloc(bytes, {0});
        if (!address) return;
        const BlockIndex all = add_segment(*address, bytes, {0});
        superblocks_.push_back({all, bytes, kGlobal});
        put_in_set(all, 0);
        insert(all);
    }

    Bytes alignment() const override { return kAlign; }
    Bytes largest_free() const override {
        Bytes largest = 0;
        for (const AddressOrderedBlocks& free : free_) largest = std::max(largest, free.largest());
        return largest;
    }
    void free_sizes(std::vector<Bytes>& out) const override {
        for (const AddressOrderedBlocks& free : free_)
            free.for_each([&](const AddressOrderedBlocks::Entry& entry) { out.push_back(entry.size); });
    }

private:
    using Owner = std::uint32_t;
    static constexpr Owner kGlobal = 0;  // a stream's own arena is 1 + the stream's number

    // Blocks know their superblock by their set.
    struct Superblock {
        BlockIndex first;
        Bytes size;
        Owner owner;
    };

    BlockIndex take(const Request& request) override;
    void retire(BlockIndex block, StreamId stream) override;

    BlockIndex try_take(Bytes size, Owner owner);
    BlockIndex find_global(Bytes size);
    void hand_over(std::uint32_t superblock, Owner owner);
    void merge_if_empty(std::uint32_t superblock);
    bool is_empty(const Superblock& superblock) const {
        const Block& first = block(superblock.first);
        return !first.used && first.size == superblock.size;
    }
    Superblock& superblock_of(BlockIndex b) { return superblocks_[block(b).set]; }
    AddressOrderedBlocks& free_of(Owner owner) {
        if (owner >= free_.size()) free_.resize(owner + 1u);
        return free_[owner];
    }
    void insert(BlockIndex b) { free_of(superblock_of(b).owner).insert(block(b).address, block(b).size, b); }
    void erase(BlockIndex b) { free_of(superblock_of(b).owner).erase(block(b).address); }
    // Cuts a free block that is in no list; the rest goes to the list.
    BlockIndex cut(BlockIndex b, Bytes size) {
        if (block(b).size > size) insert(split(b, size));
        return b;
    }

    std::vector<Superblock> superblocks_;  // size 0: an unused slot
    std::vector<AddressOrderedBlocks> free_{1};
};

BlockPolicy::BlockIndex Arena::take(const Request& request) {
    const Bytes size = round_up(request.bytes, kAlign);
    const Owner owner = 1 + request.stream.value;
    BlockIndex taken = try_take(size, owner);
    if (taken != kNone) return taken;
    device_.synchronize({});
    for (std::uint32_t i = 0; i < superblocks_.size(); ++i)
        if (superblocks_[i].size > 0 && superblocks_[i].owner != kGlobal) hand_over(i, kGlobal);
    for (std::uint32_t i = 0; i < superblocks_.size(); ++i)
        if (superblocks_[i].size > 0) merge_if_empty(i);
    return try_take(size, owner);
}

BlockPolicy::BlockIndex Arena::try_take(Bytes size, Owner owner) {
    if (size <= kSuperblock) {
        if (const BlockIndex own = free_of(owner).first_fit(size); own != kNone) {
            erase(own);
            return cut(own, size);
        }
    }
    const BlockIndex found = find_global(size);
    if (found == kNone) return kNone;
    if (size <= kSuperblock) hand_over(block(found).set, owner);
    erase(found);
    return cut(found, size);
}

// The lowest free block of nobody's superblocks; an empty superblock is cut to what is needed first.
BlockPolicy::BlockIndex Arena::find_global(Bytes size) {
    const BlockIndex found = free_of(kGlobal).first_fit(size);
    if (found == kNone) return kNone;
    const std::uint32_t index = block(found).set;
    const Bytes kept = std::max(size, kSuperblock);
    if (!is_empty(superblocks_[index]) || superblocks_[index].size < kept + kSuperblock) return found;
    erase(found);
    const BlockIndex rest = split(found, kept);
    superblocks_.push_back({rest, superblocks_[index].size - kept, kGlobal});
    superblocks_[index].size = kept;
    put_in_set(rest, static_cast<std::uint32_t>(superblocks_.size() - 1));
    insert(found);
    insert(rest);
    return found;
}

void Arena::hand_over(std::uint32_t index, Owner owner) {
    const auto for_each_free = [&](auto visit) {
        for (BlockIndex b = superblocks_[index].first; b != kNone && block(b).set == index; b = block(b).next)
            if (!block(b).used) visit(b);
    };
    for_each_free([&](BlockIndex b) { erase(b); });
    superblocks_[index].owner = owner;
    for_each_free([&](BlockIndex b) { insert(b); });
}

// What another stream may still use is waited for; within the stream's own arena nothing has to be.
void Arena::retire(BlockIndex b, StreamId stream) {
    const std::uint32_t index = block(b).set;
    if (superblocks_[index].owner != 1 + stream.value) device_.synchronize(stream);
    b = coalesce(
        b, [&](BlockIndex neighbour) { erase(neighbour); },
        [&](BlockIndex neighbour) { return block(neighbour).set == index; });
    insert(b);
    if (superblocks_[index].owner == kGlobal) merge_if_empty(index);
}

// Empty superblocks of nobody that touch become one.
void Arena::merge_if_empty(std::uint32_t index) {
    if (!is_empty(superblocks_[index])) return;
    const auto mergeable = [&](BlockIndex b) {
        return b != kNone && superblock_of(b).owner == kGlobal && is_empty(superblock_of(b));
    };
    const auto merge = [&](BlockIndex low, BlockIndex high) {
        erase(low);
        erase(high);
        Superblock &kept = superblock_of(low), &gone = superblock_of(high);
        kept.size += gone.size;
        gone = {kNone, 0, kGlobal};
        join(low, high);
        insert(low);
    };
    const BlockIndex b = superblocks_[index].first;
    if (const BlockIndex next = free_next(b); mergeable(next)) merge(b, next);
    if (const BlockIndex prev = free_prev(b); mergeable(prev)) merge(prev, b);
}

}  // namespace

PolicyInfo rmm_arena_policy() {
    PolicyInfo info;
    info.name = "rmm-arena";
    info.summary =
        "RAPIDS' arena: one range of fixed size; streams take superblocks of it for their small requests.\n"
        "Large frees wait for their stream; superblocks come back only when nothing is left.";
    info.reference = "rapidsai/rmm arena_memory_resource (26.10)";
    info.parameters = {
        {"arena_bytes", "bytes", "0", "the range, got at the start; 0: half of the capacity, or of the card's memory"}};
    info.own_settings = rmm::own_settings;
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        Bytes bytes = ParameterReader("rmm-arena", known, given).bytes("arena_bytes");
        if (bytes == 0) bytes = context.budget() / 2;
        return std::make_unique<Arena>(std::max(bytes / Arena::kAlign, Bytes{1}) * Arena::kAlign, context.device);
    };
    return info;
}

}  // namespace fragsim
