#include "policies/rmm/pool.hpp"

#include <algorithm>

namespace fragsim::rmm {

std::vector<PolicyParameter> pool_parameters() {
    return {
        {"initial_pool_bytes", "bytes", "0",
            "got at the start; RMM's Python interface takes half of the free memory unless told otherwise"},
        {"maximum_pool_bytes", "bytes", "0",
            "the pool does not grow beyond it, and gives back wholly free blocks to keep to it; 0: no bound"},
        {"first_stream_is_default", "bool", "false",
            "the program's first stream is the default one, whose list the initial pool is in; false: none of its is"},
    };
}

PoolConfig read_pool_config(const ParameterReader& read) {
    PoolConfig config{round_up(read.bytes("initial_pool_bytes"), kAlign), {}, read.flag("first_stream_is_default")};
    if (const Bytes maximum = read.bytes("maximum_pool_bytes"); maximum > 0) config.maximum = maximum;
    if (config.maximum && config.initial > *config.maximum) read.refuse("initial_pool_bytes", "at most the maximum");
    return config;
}

Pool::Pool(const PoolConfig& config, Device& device) : BlockPolicy(device, StreamOrder::own), config_(config) {
    if (config.initial == 0) return;
    if (const std::optional<Address> address = device_.malloc(config.initial, {0}))
        insert(add_segment(*address, config.initial, {0}), kDefaultStream);
}

BlockPolicy::BlockIndex Pool::take_bytes(Bytes bytes, List list) {
    const Bytes size = round_up(bytes, kAlign);
    BlockIndex taken = take_from(list, size);
    for (List other = 0; taken == kNone && other < lists_.size(); ++other) {
        if (other == list) continue;
        taken = take_from(other, size);
        if (taken != kNone) wait(list, other);
    }
    if (taken == kNone) taken = merge_lists(size, list);
    if (taken == kNone) taken = grow(size, list);
    return taken;
}

// The rest stays in the list.
BlockPolicy::BlockIndex Pool::take_from(List list, Bytes size) {
    OrderedBlocks& blocks = blocks_of(list);
    const auto best = blocks.lower_bound(size);
    if (best == OrderedBlocks::end()) return kNone;
    const BlockIndex taken = blocks.block(best);
    blocks.erase(best);
    if (block(taken).size > size) enter(split(taken, size), list);
    return taken;
}

BlockPolicy::BlockIndex Pool::merge_lists(Bytes size, List list) {
    std::vector<BlockIndex> moving;
    for (List other = 0; other < lists_.size(); ++other) {
        if (other == list || lists_[other].empty()) continue;
        wait(list, other);
        moving.clear();
        OrderedBlocks& blocks = lists_[other];
        for (auto p = blocks.begin(); p != OrderedBlocks::end(); p = blocks.next(p)) moving.push_back(blocks.block(p));
        blocks = {};
        for (const BlockIndex b : moving) put_in_set(b, kOther);  // in no list: they do not join each other yet
        for (const BlockIndex b : moving) insert(b, list);
        if (const BlockIndex taken = take_from(list, size); taken != kNone) return taken;
    }
    return kNone;
}

BlockPolicy::BlockIndex Pool::grow(Bytes size, List list) {
    if (size_to_grow(size) == 0) reclaim_free_blocks(size, list);
    for (Bytes bytes = size_to_grow(size); bytes >= size; bytes = std::max(size, bytes / 2)) {
        if (const std::optional<Address> address = device_.malloc(bytes, stream_of(list))) {
            insert(add_segment(*address, bytes, stream_of(list)), list);
            return take_from(list, size);
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

// Gives upstream blocks back until `size` bytes fit below the maximum, or there is none left. All lists have been joined
// to this one.
void Pool::reclaim_free_blocks(Bytes size, List list) {
    if (size > *config_.maximum) return;
    const OrderedBlocks& blocks = blocks_of(list);
    std::vector<BlockIndex> whole;
    for (auto p = blocks.begin(); p != OrderedBlocks::end(); p = blocks.next(p))
        if (is_whole_segment(blocks.block(p))) whole.push_back(blocks.block(p));
    std::sort(whole.begin(), whole.end(),
        [&](BlockIndex a, BlockIndex b) { return block(a).address < block(b).address; });
    for (const BlockIndex b : whole) {
        if (*config_.maximum - stats_.reserved_bytes.all.current >= size) return;
        erase(b);
        device_.free(block(b).address, block(b).size, stream_of(list));
        remove_segment(b);
    }
}

// To the list of the stream that freed it, which records an event for the others to wait for.
void Pool::retire(BlockIndex block, StreamId stream) {
    device_.record(stream);
    insert(block, list_of(stream));
}

void Pool::insert(BlockIndex b, List list) {
    b = coalesce(
        b, [&](BlockIndex neighbour) { erase(neighbour); },
        [&](BlockIndex neighbour) { return block(neighbour).set == list; });
    enter(b, list);
}

void Pool::enter(BlockIndex b, List list) {
    put_in_set(b, list);
    blocks_of(list).insert({block(b).size, block(b).address}, b);
}

Bytes Pool::largest_free() const {
    Bytes largest = 0;
    for (const OrderedBlocks& blocks : lists_) largest = std::max(largest, blocks.largest());
    return largest;
}

void Pool::free_sizes(std::vector<Bytes>& out) const {
    for (const OrderedBlocks& blocks : lists_)
        for (auto p = blocks.begin(); p != OrderedBlocks::end(); p = blocks.next(p)) out.push_back(blocks.size(p));
}

}  // namespace fragsim::rmm
