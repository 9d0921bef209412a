// Bencher Metric Format, for bencher.dev, which keeps the history of figures: a benchmark a run, a measure a metric.
// Source: Bencher's documentation, "Bencher Metric Format (BMF)".
#pragma once

#include <string>
#include <vector>

#include "lib/metrics/catalog.hpp"

namespace fragsim {

struct Benchmark {
    std::string name;
    std::vector<Metric> metrics;
};

// Names that come again get a number.
std::string bencher_json(const std::vector<Benchmark>& benchmarks);

}  // namespace fragsim
