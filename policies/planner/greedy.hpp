// Greedy packing: one item after the other, each into a gap among those placed before that it overlaps with in time.
// Only the order matters; the functions below are the orders of spec/policies.md, section 8, as keys.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/planner/sections.hpp"

namespace fragsim::planner {

inline constexpr Bytes kNoLimit = Bytes{1} << 62;  // leaves room to add an item's bytes

struct Problem {
    std::span<const Item> items;  // no lifespan is empty; the sum of all bytes is at most kNoLimit
    Sections sections;
    Bytes limit;  // no item ends above it
    Bytes load;   // of the sections: the least that any plan for all items needs
};

enum class Gap { lowest, smallest };

using Order = std::vector<std::uint32_t>;  // items, the first to be placed first

Order by_size(const Problem& problem);
Order by_start(const Problem& problem);
Order by_area(const Problem& problem);
Order by_contention(const Problem& problem);

Plan place(const Problem& problem, const Order& order, Gap gap = Gap::lowest);

// Orders as numbers, by item; the largest goes first.
using Weights = std::vector<double>;

Weights weights_by_size(const Problem& problem);
// Sizes that are alike (of one power of two) by lifespan: what lives long goes below what comes and goes.
Weights weights_by_size_class(const Problem& problem);

// Places by weight, makes heavier what came to lie above the load, the more the higher, and tries again: at most
// `rounds` times and while the plans' work is below `work`. Returns the best ("squeaky wheel" optimization).
Plan place_and_mend(const Problem& problem, Weights weights, std::int64_t rounds, std::int64_t work);

// Fewer items left out, then fewer of their bytes, then the lower plan.
bool is_better(const Problem& problem, const Plan& plan, const Plan& than);

}  // namespace fragsim::planner
