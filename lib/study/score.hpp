// How good a setting is, and which of many are worth showing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/types.hpp"
#include "lib/policy/setting_traits.hpp"

namespace fragsim {

// How one setting does on all traces together.
struct Score {
    bool refused = false;       // by PyTorch, for some trace; then the rest means nothing and everything else is better
    std::int64_t failing = 0;   // traces that do not survive
    std::int64_t ooms = 0;      // requests that failed, in all of them
    std::int64_t left_out = 0;  // of them: buffers live at the start; what is reserved without them means little
    Bytes reserved = 0;         // the largest peak
    Bytes reserved_sum = 0;     // of all peaks
    double stall_ns = 0;        // modelled time in driver calls, in all
    std::int64_t driver_calls = 0, retries = 0;
};

enum class Goal { survive, reserved, stall };
// Is `a` better in the first goal in which they differ? Leads a search; what is recommended is another question
// (recommendation.hpp).
bool better(const Score& a, const Score& b, const std::vector<Goal>& goals);

struct Candidate {
    std::string alloc_conf;
    Score score;
    SettingTraits traits;
    // The smallest card that would do for all traces, searched for among those that are worth showing.
    struct Card {
        std::optional<Bytes> bytes;  // none: no card would do
    };
    std::optional<Card> card = {};  // none: not searched for
};

// Of those that survive as they stand: each with the least stall for what it reserves, the least reserved first. Empty:
// none does.
std::vector<std::size_t> pareto_front(const std::vector<Candidate>& tried);

}  // namespace fragsim
