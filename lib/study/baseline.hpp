// What `check` compares with: the figures of runs as they were when somebody found them good.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/study/comparison.hpp"

namespace fragsim {

struct BaselineEntry {
    std::string trace;   // path relative to the baseline file
    std::string sha256;  // of the trace file as stored
    std::optional<int> gpu;
    std::string policy;    // NAME[:KEY=VALUE,...]
    std::string capacity, memory_limit;  // as the user wrote them; "": none
    Tolerances tolerances;
    RunFigures figures;  // metrics as far as they are judged, courses thinned

    static constexpr std::size_t kMaxOoms = 100;          // that are listed; all are counted
    static constexpr std::size_t kMaxCoursePoints = 256;  // of a course
};

struct Baseline {
    Tolerances tolerances;  // for every entry that has none of its own
    std::vector<BaselineEntry> entries;
};

// What an entry keeps of a run.
RunFigures kept_figures(RunFigures figures);

// The same run: trace, gpu, policy and limits. Paths are compared as they are.
bool same_run(const BaselineEntry& a, const BaselineEntry& b);

}  // namespace fragsim
