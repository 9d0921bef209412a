// Up to where figures of a trace may go, so that nothing that is summed up over one overflows.
#pragma once

#include <string>

#include "lib/trace/trace.hpp"

namespace fragsim {

// Of all allocations together, and likewise of all segment entries, of the segments of a picture, of their blocks. A
// replay reserves and counts a small multiple of it.
inline constexpr Bytes kMaxTotalBytes = Bytes{1} << 60;
// Of a time stamp, whatever its sign: until the year 2255. What is less is exact where numbers are doubles.
inline constexpr std::int64_t kMaxTimeUs = std::int64_t{1} << 53;

// Throws Error(input) with the place for a trace that goes beyond; `file` is its name.
void check_limits(const Trace& trace, const std::string& file);

}  // namespace fragsim
