// Binary buddy.
//
// Rationale: splitting and joining by halves takes a bounded number of steps and a free block's partner is known from
// its address alone. Approach: sizes are powers of two of min_block_bytes; the smallest free block that is large
// enough, the lowest among equals, is halved until it fits; a freed block joins its buddy while that is free and whole.
// Source: spec/policies.md, section 2 (Knuth, volume 1, section 2.5; the lazy variant after Barkley and Lee, SVR4).
// Ours: when the device refuses an arena, arenas of half the size are tried down to the block's.
//
//   arena 1024   [ 128 |64|64|    256    |          512           ]
#include <algorithm>
#include <bit>
#include <deque>

#include "lib/core/ordered_blocks.hpp"
#include "lib/policy/block_policy.hpp"
#include "lib/policy/parameters.hpp"

namespace fragsim {
namespace {

struct BuddyConfig {
    Bytes min_block, arena;
    std::int64_t max_arenas;  // 0: as many as the device gives
    bool arena_doubling, tail_trim, lazy, release_empty, huge_direct;
};

class Buddy final : public BlockPolicy {
public:
    Buddy(const BuddyConfig& config, Device& device) : BlockPolicy(device, StreamOrder::inserted), config_(config) {}

    Bytes alignment() const override { return std::min<Bytes>(config_.min_block, 512); }
    Bytes largest_free() const override { return std::max(free_.largest(), largest_lazy()); }
    void free_sizes(std::vector<Bytes>& out) const override {
        for (auto p = free_.begin(); p != OrderedBlocks::end(); p = free_.next(p)) out.push_back(free_.size(p));
        for (const Order& order : orders_)
            for (const BlockIndex lazy : order.lazy) out.push_back(block(lazy).size);
    }
    void empty_cache() override;

private:
    // Which blocks a set number stands for: huge ones are segments of their own, lazy ones are free but not joined.
    enum Set : std::uint32_t { kOrdinary, kHuge, kLazy };
    struct Order {
        std::int64_t allocated = 0;
        std::deque<BlockIndex> lazy;  // freed and not joined, oldest first
    };

    BlockIndex take(const Request& request) override;
    void retire(BlockIndex block, StreamId) override;

    BlockIndex take_free(Bytes size);
    BlockIndex grow(Bytes size, StreamId stream);
    void trim(BlockIndex block, Bytes size);
    void retire_trimmed(BlockIndex block);
    void give_globally(BlockIndex block);
    void flush_lazy();
    void release_arena(BlockIndex whole);
    Bytes largest_lazy() const {
        for (std::size_t i = orders_.size(); i-- > 0;)
            if (!orders_[i].lazy.empty()) return config_.min_block << i;
        return 0;
    }
    void insert(BlockIndex b) { free_.insert({block(b).size, block(b).address}, b); }
    void erase(BlockIndex b) { free_.erase(OrderedBlocks::Key{block(b).size, block(b).address}); }
    Order& order_of(Bytes size) {
        const auto index =
            static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(size / config_.min_block)));
        if (index >= orders_.size()) orders_.resize(index + 1);
        return orders_[index];
    }
    bool is_order(Bytes size) const { return std::has_single_bit(static_cast<std::uint64_t>(size)); }

    BuddyConfig config_;
    std::int64_t arenas_ = 0;  // held
    OrderedBlocks free_;       // by (size, address)
    std::vector<Order> orders_;
};

BlockPolicy::BlockIndex Buddy::take(const Request& request) {
    const Bytes exact = round_up(request.bytes, config_.min_block);
    if (exact > config_.arena) {
        if (!config_.huge_direct) return kNone;
        const std::optional<Address> address = device_.malloc(exact, request.stream);
        if (!address) return kNone;
        const BlockIndex huge = add_segment(*address, exact, request.stream);
        put_in_set(huge, kHuge);
        return huge;
    }
    const auto size = static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(exact)));
    Order& order = order_of(size);
    BlockIndex taken = kNone;
    if (!order.lazy.empty()) {
        taken = order.lazy.back();
        order.lazy.pop_back();
        put_in_set(taken, kOrdinary);
    } else {
        taken = take_free(size);
        if (taken == kNone) {
            flush_lazy();
            taken = take_free(size);
        }
        if (taken == kNone) taken = grow(size, request.stream);
        if (taken == kNone) return kNone;
        while (block(taken).size > size) insert(split(taken, block(taken).size / 2));
    }
    ++order_of(size).allocated;
    if (config_.tail_trim && exact < size) trim(taken, exact);
    return taken;
}

BlockPolicy::BlockIndex Buddy::take_free(Bytes size) {
    const auto best = free_.lower_bound(size);
    if (best == OrderedBlocks::end()) return kNone;
    const BlockIndex found = free_.block(best);
    free_.erase(best);
    return found;
}

BlockPolicy::BlockIndex Buddy::grow(Bytes size, StreamId stream) {
    if (config_.max_arenas > 0 && arenas_ >= config_.max_arenas) return kNone;
    const Bytes largest = config_.arena_doubling ? config_.arena << std::min<std::int64_t>(arenas_, 20) : config_.arena;
    for (Bytes arena = largest; arena >= size; arena /= 2) {
        const std::optional<Address> address = device_.malloc(arena, stream);
        if (!address) continue;
        ++arenas_;
        return add_segment(*address, arena, stream);
    }
    return kNone;
}

// Keeps the first `size` bytes; the high halves that they do not reach are free again.
void Buddy::trim(BlockIndex b, Bytes size) {
    // What is left of the block lies in its buddies of ever smaller size, the last of which is cut in the middle.
    Bytes kept = 0;
    BlockIndex part = b;
    std::vector<BlockIndex> high;
    for (Bytes half = block(b).size / 2; kept < size; half /= 2) {
        if (size - kept == 2 * half) break;
        const BlockIndex upper = split(part, half);
        if (size - kept > half) {
            kept += half;
            part = upper;
        } else {
            high.push_back(upper);
        }
    }
    for (const BlockIndex upper : high) insert(upper);
    // The parts that stay are one block in the program's hands.
    while (block(b).size < size) join(b, block(b).next);
}

void Buddy::retire(BlockIndex b, StreamId) {
    if (block(b).set == kHuge) {
        const Block huge = block(b);
        const StreamId stream = segment_of(b).stream;
        remove_segment(b);
        device_.free(huge.address, huge.size, stream);
        return;
    }
    const auto whole = static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(block(b).size)));
    Order& order = order_of(whole);
    const std::int64_t slack = order.allocated - static_cast<std::int64_t>(order.lazy.size());
    --order.allocated;
    if (whole != block(b).size) return retire_trimmed(b);
    if (config_.lazy && slack >= 2) {
        put_in_set(b, kLazy);
        order.lazy.push_back(b);
        return;
    }
    give_globally(b);
    if (config_.lazy && slack <= 0 && !order.lazy.empty()) {
        const BlockIndex oldest = order.lazy.front();
        order.lazy.pop_front();
        give_globally(oldest);
    }
}

// A trimmed block is its buddies of falling size, one behind the other.
void Buddy::retire_trimmed(BlockIndex b) {
    std::vector<BlockIndex> parts;
    for (BlockIndex part = b;;) {
        const auto size = static_cast<Bytes>(std::bit_floor(static_cast<std::uint64_t>(block(part).size)));
        parts.push_back(part);
        if (size == block(part).size) break;
        part = split(part, size);
    }
    // The parts are in no set, and the last may join what was trimmed off; the others follow, high end first.
    for (const BlockIndex part : parts) put_in_set(part, kLazy);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) give_globally(*part);
}

void Buddy::give_globally(BlockIndex b) {
    put_in_set(b, kOrdinary);
    while (block(b).size < segment_of(b).size) {
        const auto offset = static_cast<Bytes>(block(b).address - segment_of(b).address);
        const bool low = offset / block(b).size % 2 == 0;
        const BlockIndex buddy = low ? free_next(b) : free_prev(b);
        if (buddy == kNone || block(buddy).size != block(b).size || block(buddy).set != kOrdinary) break;
        erase(buddy);
        if (low) {
            join(b, buddy);
        } else {
            join(buddy, b);
            b = buddy;
        }
    }
    if (config_.release_empty && is_whole_segment(b)) return release_arena(b);
    insert(b);
}

void Buddy::flush_lazy() {
    for (Order& order : orders_) {
        std::sort(order.lazy.begin(), order.lazy.end(),
            [&](BlockIndex a, BlockIndex b) { return block(a).address < block(b).address; });
        for (const BlockIndex lazy : order.lazy) give_globally(lazy);
        order.lazy.clear();
    }
}

void Buddy::release_arena(BlockIndex whole) {
    const Segment arena = segment_of(whole);
    remove_segment(whole);
    --arenas_;
    device_.free(arena.address, arena.size, arena.stream);
}

void Buddy::empty_cache() {
    flush_lazy();
    std::vector<BlockIndex> whole;
    for (const Segment& segment : segments())
        if (segment.first != kNone && segment.used_blocks == 0 && is_whole_segment(segment.first))
            whole.push_back(segment.first);
    std::sort(
        whole.begin(), whole.end(), [&](BlockIndex a, BlockIndex b) { return block(a).address > block(b).address; });
    for (const BlockIndex arena : whole) {
        erase(arena);
        release_arena(arena);
    }
    refresh_split();
}

}  // namespace

PolicyInfo buddy_policy() {
    PolicyInfo info;
    info.name = "buddy";
    info.summary =
        "binary buddy: sizes are powers of two, blocks are halved and joined again with their other half.\n"
        "Bounded time, but up to half of every block is wasted inside.";
    info.reference = "Knuth, The Art of Computer Programming, volume 1, section 2.5";
    info.parameters = {
        {"min_block_bytes", "bytes", "512", "smallest block; a power of two"},
        {"arena_bytes", "bytes", "1GiB", "what is got from the device at once; a power of two"},
        {"max_arenas", "count", "0", "no more arenas than that; 0: no bound"},
        {"arena_doubling", "bool", "false", "the next arena is 2^n times as large, n the number of arenas held"},
        {"tail_trim", "bool", "false", "what a request does not need of its block becomes free, in smaller buddies"},
        {"lazy", "off|svr4", "off", "svr4: freed blocks are not joined while their size is in demand"},
        {"release_empty", "bool", "false", "arenas go back as soon as they are free, not only on empty_cache"},
        {"huge_direct", "bool", "true", "requests larger than an arena go to the device; else they are out of memory"},
    };
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("buddy", known, given);
        const BuddyConfig config{read.power_of_two("min_block_bytes", 1), read.power_of_two("arena_bytes", 1),
            read.count("max_arenas", 0, 1'000'000), read.flag("arena_doubling"), read.flag("tail_trim"),
            read.choice<int>("lazy") == 1, read.flag("release_empty"), read.flag("huge_direct")};
        if (config.arena < config.min_block) read.refuse("arena_bytes", "at least min_block_bytes");
        return std::make_unique<Buddy>(config, context.device);
    };
    return info;
}

}  // namespace fragsim
