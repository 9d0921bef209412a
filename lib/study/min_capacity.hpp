// How small a card would do, or how small a memory limit.
#pragma once

#include <optional>

#include "lib/study/trial.hpp"

namespace fragsim {

// Policies are not monotone: a larger capacity may fail where a smaller one does not, so the answer says what was
// tried. Source: spec/policies.md, section 11.6.
struct MinCapacity {
    bool memory_limit = false;  // that is what was searched, else the capacity
    Bytes bytes = 0;            // the smallest multiple of 2 MiB found at which the run survives
    Bytes excluded_from = 0;    // every multiple from here up to `bytes` fails; 0: every smaller one does
    Bytes highest_failing = 0;  // above `bytes`, of those tried; 0: none
    std::int64_t trials = 0;

    bool monotone() const { return highest_failing == 0; }
};

struct MinCapacitySearch {
    int probes_above = 16;     // tried, too: evenly spaced from the answer to the unbounded run's peak
    int probes_next = 4;       // and so many multiples right above the answer
    double replays_below = 4;  // the price, in whole replays, of trying every multiple below it, from there downwards
};

// No allocator can do with less than what is live at once, the requests included that the recorded run did not get.
Bytes least_capacity(const Trace& trace);

// Searched is the memory limit where `options` have one, on a card without a bound; else the capacity. The values in
// `options` and on_oom are ignored. None: nothing up to `most` would do.
std::optional<MinCapacity> find_min_capacity(const Trace& trace, const PolicySpec& spec, const RunOptions& options,
    const MinCapacitySearch& search = {}, Bytes most = Bytes{1} << 44);

}  // namespace fragsim
