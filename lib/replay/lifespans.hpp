// When each buffer of a trace occupies its memory: what an offline policy plans with.
#pragma once

#include <vector>

#include "lib/policy/policy.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

// By BufferId. A buffer that is there when the trace begins begins at event 0; a buffer that the events do not mention
// has an empty lifespan.
std::vector<Lifespan> lifespans_of(const Trace& trace);

}  // namespace fragsim
