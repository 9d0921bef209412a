// Offline packing: given every buffer's lifespan in advance, where should each lie so that the whole needs little
// memory? A plan gives each item an offset such that no two overlap in time and address.
//
//   address
//   height +-----------------+      Finding the least height is NP-hard. No plan is lower than the load, the largest
//          |   c   +---------+      sum of bytes alive at one time, and the greedy orders mostly come close to it.
//          +-------+    b    |
//          |   a   +---------+
//        0 +-----------------+ time
//
// Everything here is deterministic; ties go to the lower index. Source: spec/policies.md, section 8.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim::planner {

struct Item {
    std::uint32_t begin, end;  // alive in [begin, end), any unit of time; an empty lifespan counts as one instant
    Bytes bytes;               // > 0, aligned as the offsets shall be
};

enum class Algorithm {
    automatic,          // the lowest of the cheap orders, mended; small inputs also by search
    greedy_size,        // largest first, each in the lowest gap
    greedy_size_best,   // largest first, each in the smallest gap that is large enough
    greedy_start,       // in order of begin, each in the lowest gap: first fit with hindsight of the height only
    greedy_area,        // bytes x lifespan
    greedy_contention,  // by the largest load that an item is part of, then area
    layered,            // chains of equal sizes stacked as layers, after STAlloc
    exact,              // search for the least height; proven where the budget allows
};

struct PackOptions {
    std::optional<Bytes> capacity;         // no item ends above it; what does not fit is left out and the rest go on
    std::int64_t exact_nodes = 1'000'000;  // budget of the search: items tried at some offset
};

struct Plan {
    static constexpr Bytes kLeftOut = -1;

    std::vector<Bytes> offsets;  // by item; kLeftOut: found no place below the capacity
    Bytes height = 0;            // largest offset + bytes
    std::uint32_t left_out = 0;  // items
    bool optimal = false;        // all items have a place and no plan is lower: proven
    std::int64_t work = 0;       // steps it took: time, but the same on every machine; about 10^8 a second
};

Plan pack(std::span<const Item> items, Algorithm algorithm, const PackOptions& options = {});

// The largest sum of bytes alive at one time: no plan for all items is lower.
Bytes load(std::span<const Item> items);

}  // namespace fragsim::planner
