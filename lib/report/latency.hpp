// Measured latencies as text.
#pragma once

#include <string>

#include "lib/metrics/latency.hpp"

namespace fragsim {

// `real`: the driver was a real one, so that its calls are worth showing. `width`, `color`: as in RenderOptions.
std::string latency_tables(const LatencyReport& latency, bool real, int width, bool color);

}  // namespace fragsim
