// A set of free blocks ordered by (size, tie), made for best fit: find the smallest that is large enough, take it, put
// back what is left. Flat: sorted runs of up to 64 keys and a sorted array of the runs' last keys, so that a change moves
// a kilobyte at most whatever the number of blocks, and a search touches two short arrays.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim {

class OrderedBlocks {
public:
    using Block = std::uint32_t;
    __extension__ using Key = unsigned __int128;

    // `tie` orders blocks of equal size; (size, tie) is unique.
    static constexpr Key key(Bytes size, std::uint64_t tie) { return static_cast<Key>(static_cast<std::uint64_t>(size)) << 64 | tie; }
    static constexpr Bytes size_of(Key key) { return static_cast<Bytes>(static_cast<std::uint64_t>(key >> 64)); }

    // A place between begin and end. Any change to the set ends its validity.
    struct Position {
        std::uint32_t run, index;
        friend bool operator==(Position, Position) = default;
    };

    bool empty() const { return last_keys_.empty(); }
    Position begin() const { return {0, 0}; }
    Position end() const { return {static_cast<std::uint32_t>(last_keys_.size()), 0}; }
    Block block(Position p) const { return runs_[order_[p.run]].blocks[p.index]; }
    Bytes size(Position p) const { return size_of(runs_[order_[p.run]].keys[p.index]); }
    Bytes largest() const { return empty() ? 0 : size_of(last_keys_.back()); }

    Position next(Position p) const {
        return p.index + 1 < runs_[order_[p.run]].count ? Position{p.run, p.index + 1} : Position{p.run + 1, 0};
    }
    Position previous(Position p) const {
        return p.index > 0 ? Position{p.run, p.index - 1} : Position{p.run - 1, runs_[order_[p.run - 1]].count - 1};
    }

    // The first block with a key of at least `wanted`.
    Position lower_bound(Key wanted) const {
        const std::uint32_t run = search(last_keys_.data(), static_cast<std::uint32_t>(last_keys_.size()), wanted);
        if (run == last_keys_.size()) return end();
        const Run& found = runs_[order_[run]];
        return {run, search(found.keys, found.count, wanted)};
    }
    Position lower_bound(Bytes size) const { return lower_bound(key(size, 0)); }

    void insert(Key key, Block block) {
        if (empty()) {
            add_run(0);
            last_keys_[0] = key;
        }
        std::uint32_t at = search(last_keys_.data(), static_cast<std::uint32_t>(last_keys_.size()), key);
        if (at == last_keys_.size()) last_keys_[--at] = key;
        if (runs_[order_[at]].count == kRunCapacity) {
            split_run(at);
            at += last_keys_[at] < key;
        }
        Run& run = runs_[order_[at]];
        const std::uint32_t index = search(run.keys, run.count, key);
        std::memmove(run.keys + index + 1, run.keys + index, (run.count - index) * sizeof(Key));
        std::memmove(run.blocks + index + 1, run.blocks + index, (run.count - index) * sizeof(Block));
        run.keys[index] = key;
        run.blocks[index] = block;
        ++run.count;
    }

    void erase(Position p) {
        Run& run = runs_[order_[p.run]];
        --run.count;
        std::memmove(run.keys + p.index, run.keys + p.index + 1, (run.count - p.index) * sizeof(Key));
        std::memmove(run.blocks + p.index, run.blocks + p.index + 1, (run.count - p.index) * sizeof(Block));
        if (run.count == 0) {
            unused_.push_back(order_[p.run]);
            order_.erase(order_.begin() + p.run);
            last_keys_.erase(last_keys_.begin() + p.run);
        } else if (p.index == run.count) {
            last_keys_[p.run] = run.keys[run.count - 1];
        }
    }
    void erase(Key key) { erase(lower_bound(key)); }  // the key must be there

private:
    static constexpr std::uint32_t kRunCapacity = 64;
    struct Run {
        std::uint32_t count = 0;
        Block blocks[kRunCapacity];
        Key keys[kRunCapacity];
    };

    // Index of the first key >= wanted, without branches on the data.
    static std::uint32_t search(const Key* keys, std::uint32_t count, Key wanted) {
        std::uint32_t first = 0;
        while (count > 1) {
            const std::uint32_t half = count / 2;
            first += keys[first + half - 1] < wanted ? half : 0;
            count -= half;
        }
        return first + (count == 1 && keys[first] < wanted);
    }

    void add_run(std::uint32_t at) {
        std::uint32_t slot;
        if (unused_.empty()) {
            slot = static_cast<std::uint32_t>(runs_.size());
            runs_.emplace_back();
        } else {
            slot = unused_.back();
            unused_.pop_back();
        }
        order_.insert(order_.begin() + at, slot);
        last_keys_.insert(last_keys_.begin() + at, Key{});
    }

    void split_run(std::uint32_t at) {
        add_run(at + 1);
        Run& left = runs_[order_[at]];
        Run& right = runs_[order_[at + 1]];
        constexpr std::uint32_t kHalf = kRunCapacity / 2;
        std::copy(left.keys + kHalf, left.keys + kRunCapacity, right.keys);
        std::copy(left.blocks + kHalf, left.blocks + kRunCapacity, right.blocks);
        left.count = right.count = kHalf;
        last_keys_[at + 1] = last_keys_[at];
        last_keys_[at] = left.keys[kHalf - 1];
    }

    // last_keys_[i] == the last key of runs_[order_[i]]; no run is empty.
    std::vector<Key> last_keys_;
    std::vector<std::uint32_t> order_;
    std::vector<Run> runs_;
    std::vector<std::uint32_t> unused_;
};

}  // namespace fragsim
