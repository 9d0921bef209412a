// Results that `replay --json` and `compare --json` wrote, read again to be compared.
#pragma once

#include <string>
#include <vector>

#include "lib/study/comparison.hpp"

namespace fragsim {

inline constexpr const char* kResultSchema = "fragsim.result";

struct StoredRun {
    RunName name;
    std::string trace_sha256;
    Parameters parameters;  // all of the policy's
    std::string policy;     // its name
    RunFigures figures;
};

// Is the file a document of fragsim's, and of which schema? "": it is something else, a trace perhaps. "-" is never
// asked.
std::string stored_schema(const std::string& path);

// Throws Error(input), with the place, for what is no result of a version that is known.
std::vector<StoredRun> read_results(const std::string& path);

// Runs of the same trace, device, policy with all its parameters, and limits are compared. What only one side has, or
// has twice, is a problem of the comparison.
Comparison compare_results(const std::string& baseline_path, const std::string& candidate_path);

}  // namespace fragsim
