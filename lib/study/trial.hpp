// A replay that is asked only how it ended: what searches make many of. Costs what the policy itself costs.
#pragma once

#include "lib/study/run.hpp"

namespace fragsim {

struct Trial {
    std::int64_t ooms = 0;           // requests that failed, as count_failures() counts them
    std::int64_t left_out = 0;       // of them: buffers live at the start; the rest is a replay without these
    std::int64_t optional_ooms = 0;  // of them: the program may go on with less (workspace_at)
    Bytes reserved_peak = 0;
    std::int64_t retries = 0;
    std::int64_t driver_calls = 0;  // the refused ones included
    double driver_time_ns = 0;      // modelled
    std::uint64_t events = 0;       // replayed to find this out
    std::vector<SameCourse> same;   // what all of this would have been the same with

    bool survives() const { return ooms == 0; }
    // Every request that failed is one that the program may do without.
    bool may_survive() const { return ooms > 0 && ooms == optional_ooms; }
};

// On the host model, whatever device `options` name; audits and records are left out. Of a policy that assumes what
// nobody recorded, the worse of both ends. With OnOom::stop it ends at the
// first request that fails, and only survives() and `events` mean anything.
Trial try_policy(const Trace& trace, const PolicySpec& spec, const RunOptions& options);

}  // namespace fragsim
