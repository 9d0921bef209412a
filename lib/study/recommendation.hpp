// Which setting is recommended: the one place that `explain` and `tune` both ask. Whoever pastes the line is promised:
//
// * It carries more of the runs than what is in force, or it needs 1 % less memory at least, and visibly less: never
//   more, and never a larger card.
// * It is worth its price. Each per cent of memory that it saves may cost half as much modelled stall again (1 % one
//   and a half times, 10 % six times), against what is in force and against every setting that is not more complicated;
//   a stall that is too short to notice costs nothing, nor does one within the cost model's error of the other.
// * It works as it stands: a setting that does nothing without a memory fraction is an extra at most, and what costs more
//   than is modelled is taken where nothing else carries the run.
//
// Of those, in this order: what carries the most runs; the least memory, where all within 1 % of the least are equal;
// the fewest entries; the least stall, where all within 40 % of the least are equal (the cost model is no better); the
// least reserved, within 1 %; expandable segments before other keys before another backend. A band is always around the
// least of those that are left, so that being equal does not depend on the order in which settings are compared.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/core/types.hpp"
#include "lib/policy/setting_traits.hpp"

namespace fragsim {

// What a setting gives and costs, in all runs together.
struct Standing {
    SettingTraits traits;
    bool refused = false;         // by PyTorch; then the rest means nothing
    std::int64_t failing = 0;     // runs that it does not carry
    std::optional<Bytes> memory;  // the smallest card, or what is reserved where no limit is known; none: no card would do
    std::optional<Bytes> card;    // the smallest card; none: no card would do, or nobody looked
    Bytes reserved = 0;           // the largest peak
    double stall_ns = 0;          // modelled
};

struct RankingRules {
    bool stall_first = false;     // stall before memory; then less stall may need more memory
    double small_stall_ns = 1e6;  // too short to notice
};

struct Recommendation {
    std::size_t best;                    // the one in force where nothing is worth a change
    std::optional<std::size_t> simple;   // the best of at most kSimpleEntries, whatever is in force
    std::optional<std::size_t> extra;    // better still than `best` and carries every run, but needs a memory fraction
};

inline constexpr int kSimpleEntries = 2;

// `in_force`: index of what everything is compared with.
Recommendation recommend(const std::vector<Standing>& settings, std::size_t in_force, const RankingRules& rules = {});

// A thousandth of a run is not noticed, nor is a millisecond.
double small_stall_ns(double run_ns);

}  // namespace fragsim
