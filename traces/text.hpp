// The plain text form of a trace: short, readable, ready to paste into a test or a report. FORMAT.md describes it.
#pragma once

#include <string>

#include "lib/trace/trace.hpp"

namespace fragsim {

// Buffers are named by their numbers. What was in use at the start comes as allocations before everything else, an
// out-of-memory entry as a marker; recorded addresses, pools and times are left out.
std::string write_text(const Trace& trace);

}  // namespace fragsim
