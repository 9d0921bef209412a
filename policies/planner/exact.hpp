// The least height of small inputs: takes apart what can be packed apart, and searches what is left.
#pragma once

#include <cstdint>

#include "policies/planner/greedy.hpp"

namespace fragsim::planner {

// A plan for all items from at most `nodes` nodes of search, whatever the problem's limit; `optimal` where it is
// proven.
Plan pack_exactly(const Problem& problem, std::int64_t nodes);

}  // namespace fragsim::planner
