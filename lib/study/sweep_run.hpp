// One run of a sweep's grid.
#pragma once

#include <optional>

#include "lib/policy/policy.hpp"
#include "lib/study/run.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

struct SweepRun {
    const Recording* recording;  // outlives the run
    const Trace* trace;          // one of the recording's
    PolicySpec policy;
    RunOptions options;
};

// Throws Error(usage) for parameter values that the policy refuses: a sweep finds out before it starts.
void check_values(const SweepRun& run);

}  // namespace fragsim
