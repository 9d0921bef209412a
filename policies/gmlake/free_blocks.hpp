// Free blocks by (size, tie) for a policy that takes and returns many at once, most of them again and again: what is
// taken out stays in its heap as a stale entry and counts again when the same block comes back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim::gmlake {

class FreeBlocks {
public:
    using Block = std::uint32_t;
    static constexpr Block kNone = 0xffffffffu;

    // `tie` orders blocks of one size, the lowest first.
    void insert(Bytes size, std::uint64_t tie, Block block) {
        if (block >= states_.size()) states_.resize(std::max<std::size_t>(block + 1, 2 * states_.size()));
        State& state = states_[block];
        const bool queued = state.queued && state.size == size && state.tie == tie;
        state = {size, tie, true, true};
        if (queued) return;
        Heap& heap = heaps_[size];
        heap.push_back({tie, block});
        std::push_heap(heap.begin(), heap.end());
    }
    void erase(Block block) { states_[block].free = false; }

    // The smallest of at least `size` bytes, the lowest tie among equals.
    Block smallest(Bytes size) {
        for (auto heap = heaps_.lower_bound(size); heap != heaps_.end(); heap = heaps_.erase(heap))
            if (const Block top = top_of(heap->first, heap->second); top != kNone) return top;
        return kNone;
    }
    // The largest, the lowest tie among equals.
    Block largest() {
        while (!heaps_.empty()) {
            const auto heap = std::prev(heaps_.end());
            if (const Block top = top_of(heap->first, heap->second); top != kNone) return top;
            heaps_.erase(heap);
        }
        return kNone;
    }
    Bytes largest_size() {
        const Block block = largest();
        return block == kNone ? 0 : states_[block].size;
    }

private:
    struct Entry {
        std::uint64_t tie;
        Block block;
        friend bool operator<(const Entry& a, const Entry& b) {
            return a.tie > b.tie;
        }  // heaps have the largest on top
    };
    using Heap = std::vector<Entry>;
    struct State {
        Bytes size = 0;
        std::uint64_t tie = 0;
        bool free = false;
        bool queued = false;  // an entry with this size and tie is in its heap
    };

    // Drops stale entries from the top.
    Block top_of(Bytes size, Heap& heap) {
        while (!heap.empty()) {
            const Entry top = heap.front();
            State& state = states_[top.block];
            const bool current = state.size == size && state.tie == top.tie;
            if (current && state.free) return top.block;
            if (current) state.queued = false;
            std::pop_heap(heap.begin(), heap.end());
            heap.pop_back();
        }
        return kNone;
    }

    std::map<Bytes, Heap> heaps_;  // by size
    std::vector<State> states_;    // by block
};

}  // namespace fragsim::gmlake
