// What becomes of the run under a setting: what `explain` compares and recommends from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/study/min_capacity.hpp"

namespace fragsim {

// A setting that might be better than the one in force.
struct Setting {
    PolicySpec spec;
    std::optional<std::string> alloc_conf;  // as PYTORCH_CUDA_ALLOC_CONF would hold it; none: not a policy of PyTorch's
};

struct SettingOutcome {
    Setting setting;
    bool in_force = false;
    Trial trial;                              // within the limits
    std::optional<MinCapacity> min_capacity;  // none: no capacity would do
    std::vector<std::string> advice;          // keys without effect together
};

// The one in force first, then `settings` without it.
std::vector<SettingOutcome> try_all_settings(const Trace& trace, const Setting& in_force,
    const std::vector<Setting>& settings, const RunOptions& options, int jobs);

}  // namespace fragsim
