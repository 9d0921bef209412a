// How good a setting is, and which of many are worth showing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim {

// How one setting does on all traces together.
struct Score {
    bool refused = false;      // by PyTorch, for some trace; then the rest means nothing and everything else is better
    std::int64_t failing = 0;  // traces that do not survive
    std::int64_t ooms = 0;     // requests that failed, in all of them
    Bytes reserved = 0;        // the largest peak: the card that would do
    Bytes reserved_sum = 0;    // of all peaks
    double stall_ns = 0;       // modelled time in driver calls, in all
    std::int64_t driver_calls = 0, retries = 0;
};

enum class Goal { survive, reserved, stall };
// Is `a` better in the first goal in which they differ?
bool better(const Score& a, const Score& b, const std::vector<Goal>& goals);

struct Candidate {
    std::string alloc_conf;
    Score score;
};

// The one with the fewest keys that survives as well as `best` and loses 1 % at most in the first other goal.
std::size_t simplest_of(const std::vector<Candidate>& tried, std::size_t best, const std::vector<Goal>& goals);

// Of those that survive best: each with the least stall for what it reserves, the least reserved first.
std::vector<std::size_t> pareto_front(const std::vector<Candidate>& tried);

}  // namespace fragsim
