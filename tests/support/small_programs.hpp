// Programs small enough that every setting and every capacity can be tried one by one.
#pragma once

#include <cstdint>

#include "lib/trace/trace.hpp"

namespace fragsim::test {

// The same program for the same seed: 40 to 100 ops on up to `streams` streams, sizes about those where PyTorch's
// allocator decides.
Trace small_program(std::uint32_t seed, std::uint16_t streams = 1);

}  // namespace fragsim::test
