// A replay that is asked only how it ended: what searches make many of. Costs what the policy itself costs.
#pragma once

#include "lib/study/run.hpp"

namespace fragsim {

struct Trial {
    std::int64_t ooms = 0;  // requests that failed, the recorded run's own included
    Bytes reserved_peak = 0;
    std::int64_t retries = 0;
    std::int64_t driver_calls = 0;  // the refused ones included
    double driver_time_ns = 0;      // modelled
    std::uint64_t events = 0;       // replayed to find this out
    std::vector<SameCourse> same;   // what all of this would have been the same with

    bool survives() const { return ooms == 0; }
};

// Everything but the device's kind, audits and records is taken from `options`. With OnOom::stop it ends at the first
// request that fails, and only survives() and `events` mean anything. On the host model.
Trial try_policy(const Trace& trace, const PolicySpec& spec, const RunOptions& options);

}  // namespace fragsim
