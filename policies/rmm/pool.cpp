#include "policies/rmm/pool.hpp"

#include <algorithm>

namespace fragsim::rmm {

std::vector<PolicyParameter> pool_parameters() {
    return {
        {"initial_pool_bytes", "bytes", "0",
            "got at the start; RMM's Python interface takes half of the free memory unless told otherwise"},
        {"maximum_pool_bytes", "bytes", "0", "the pool does not grow beyond it; 0: no bound"},
    };
}

PoolConfig read_pool_config(const ParameterReader& read) {
    PoolConfig config{round_up(read.bytes("initial_pool_bytes"), kAlign), {}};
    if (const Bytes maximum = read.bytes("maximum_pool_bytes"); maximum > 0) config.maximum = maximum;
    if (config.maximum && config.initial > *config.maximum) read.refuse("initial_pool_bytes", "at most the maximum");
    return config;
}

// The first block belongs to the list of the default stream.
Pool::Pool(const PoolConfig& config, Device& device) : BlockPolicy(device, StreamOrder::own), config_(config) {
    if (config.initial == 0) return;
    if (const std::optional<Address> address = device_.malloc(config.initial, {0}))
        insert(add_segment(*address, config.initial, {0}), 0);
}

BlockPolicy::BlockIndex Pool::take_bytes(Bytes bytes, StreamId stream) {
    const Bytes size = round_up(bytes, kAlign);
    BlockIndex taken = take_from(stream.value, size);
    for (std::uint32_t other = 0; taken == kNone && other < lists_.size(); ++other) {
        if (other == stream.value) continue;
        taken = take_from(other, size);
        if (taken != kNone) device_.wait(stream, {other});
    }
    if (taken == kNone) taken = merge_lists(size, stream.value);
    if (taken == kNone) taken = grow(size, stream);
    return taken;
}

// The rest stays in the list.
BlockPolicy::BlockIndex Pool::take_from(std::uint32_t stream, Bytes size) {
    OrderedBlocks& list = list_of(stream);
    const auto best = list.lower_bound(size);
    if (best == OrderedBlocks::end()) return kNone;
    const BlockIndex taken = list.block(best);
    list.erase(best);
    if (block(taken).size > size) enter(split(taken, size), stream);
    return taken;
}

BlockPolicy::BlockIndex Pool::merge_lists(Bytes size, std::uint32_t stream) {
    std::vector<BlockIndex> moving;
    for (std::uint32_t other = 0; other < lists_.size(); ++other) {
        if (other == stream || lists_[other].empty()) continue;
        device_.wait({stream}, {other});
        moving.clear();
        OrderedBlocks& list = lists_[other];
        for (auto p = list.begin(); p != OrderedBlocks::end(); p = list.next(p)) moving.push_back(list.block(p));
        list = {};
        for (const BlockIndex b : moving) put_in_set(b, kOther);  // in no list: they do not join each other yet
        for (const BlockIndex b : moving) insert(b, stream);
        if (const BlockIndex taken = take_from(stream, size); taken != kNone) return taken;
    }
    return kNone;
}

BlockPolicy::BlockIndex Pool::grow(Bytes size, StreamId stream) {
    for (Bytes bytes = size_to_grow(size); bytes >= size; bytes = std::max(size, bytes / 2)) {
        if (const std::optional<Address> address = device_.malloc(bytes, stream)) {
            insert(add_segment(*address, bytes, stream), stream.value);
            return take_from(stream.value, size);
        }
        if (bytes == size) break;
    }
    return kNone;
}

// 0: the maximum is in the way.
Bytes Pool::size_to_grow(Bytes size) const {
    const Bytes current = stats_.reserved_bytes.all.current;
    if (!config_.maximum) return std::max(size, current);
    const Bytes left = round_up(*config_.maximum - current, kAlign);
    return size <= left ? std::max(size, left / 2) : 0;
}

// To the list of the stream that freed it, which records an event for the others to wait for.
void Pool::retire(BlockIndex block, StreamId stream) {
    device_.record(stream);
    insert(block, stream.value);
}

void Pool::insert(BlockIndex b, std::uint32_t stream) {
    b = coalesce(
        b, [&](BlockIndex neighbour) { erase(neighbour); },
        [&](BlockIndex neighbour) { return block(neighbour).set == stream; });
    enter(b, stream);
}

void Pool::enter(BlockIndex b, std::uint32_t stream) {
    put_in_set(b, stream);
    list_of(stream).insert({block(b).size, block(b).address}, b);
}

Bytes Pool::largest_free() const {
    Bytes largest = 0;
    for (const OrderedBlocks& list : lists_) largest = std::max(largest, list.largest());
    return largest;
}

void Pool::free_sizes(std::vector<Bytes>& out) const {
    for (const OrderedBlocks& list : lists_)
        for (auto p = list.begin(); p != OrderedBlocks::end(); p = list.next(p)) out.push_back(list.size(p));
}

}  // namespace fragsim::rmm
