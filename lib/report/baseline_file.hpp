// Baselines as files: schema fragsim.baseline, one line a metric, so that a diff shows which figures moved.
#pragma once

#include <string>

#include "lib/study/baseline.hpp"

namespace fragsim {

inline constexpr const char* kBaselineSchema = "fragsim.baseline";

// Throws Error(input), with the place, for what is no baseline of a version that is known, and for entries that are
// there twice.
Baseline read_baseline(const std::string& path);
std::string write_baseline(const Baseline& baseline);

}  // namespace fragsim
