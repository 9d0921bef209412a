#include "policies/cupy/pool.hpp"

#include <algorithm>

namespace fragsim::cupy {

BlockPolicy::BlockIndex Pool::take(const Request& request) {
    const Bytes size = round_up(request.bytes, kUnit);
    if (const BlockIndex chunk = take_free(size, request.stream); chunk != kNone) return chunk;
    if (!within_limit(size)) free_all_blocks();
    if (!within_limit(size)) return kNone;
    std::optional<Address> address = device_.malloc(size, request.stream);
    if (!address) {
        free_all_blocks();
        address = device_.malloc(size, request.stream);
    }
    return address ? add_segment(*address, size, request.stream) : kNone;
}

BlockPolicy::BlockIndex Pool::take_free(Bytes size, StreamId stream) {
    OrderedBlocks& arena = arena_of(stream);
    auto best = arena.lower_bound(size);
    if (best == OrderedBlocks::end()) return kNone;
    if (const std::optional<Address> address = preferred()) {
        const auto other = arena.lower_bound({arena.size(best), *address});
        if (other != OrderedBlocks::end() && block(arena.block(other)).address == *address) best = other;
    }
    const BlockIndex chunk = arena.block(best);
    arena.erase(best);
    if (block(chunk).size > size) insert(split(chunk, size));
    return chunk;
}

// Chunks go back to the arena of the stream that they were got for.
void Pool::retire(BlockIndex chunk, StreamId) {
    insert(coalesce(chunk, [&](BlockIndex neighbour) { erase(neighbour); }));
}

void Pool::free_all_blocks() {
    std::vector<BlockIndex> whole;
    for (const OrderedBlocks& arena : arenas_)
        for (auto p = arena.begin(); p != OrderedBlocks::end(); p = arena.next(p))
            if (is_whole_segment(arena.block(p))) whole.push_back(arena.block(p));
    for (const BlockIndex b : whole) {
        erase(b);
        device_.free(block(b).address, block(b).size, segment_of(b).stream);
        remove_segment(b);
    }
}

Bytes Pool::largest_free() const {
    Bytes largest = 0;
    for (const OrderedBlocks& arena : arenas_) largest = std::max(largest, arena.largest());
    return largest;
}

void Pool::free_sizes(std::vector<Bytes>& out) const {
    for (const OrderedBlocks& arena : arenas_)
        for (auto p = arena.begin(); p != OrderedBlocks::end(); p = arena.next(p)) out.push_back(arena.size(p));
}

}  // namespace fragsim::cupy
