// What becomes of the run under a setting: what `explain` compares and recommends from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/policy/setting_traits.hpp"
#include "lib/study/min_capacity.hpp"
#include "lib/study/recommendation.hpp"

namespace fragsim {

// A setting that might be better than the one in force.
struct Setting {
    PolicySpec spec;
    std::optional<std::string> alloc_conf;  // what the variable of PyTorch's settings holds; none: not PyTorch's
    SettingTraits traits = {};
    std::optional<OwnSetting> own = {};  // as users of another allocator set it
};

struct SettingOutcome {
    Setting setting;
    bool in_force = false;
    Trial trial;                              // within the limits
    std::optional<MinCapacity> min_capacity;  // none: no capacity would do
    std::vector<std::string> advice;          // keys without effect together
};

// `limited`: there is a capacity, so that the smallest card is what counts and not what is reserved.
Standing standing_of(const SettingOutcome& outcome, bool limited);

// The one in force first, then `settings` without it.
std::vector<SettingOutcome> try_all_settings(const Trace& trace, const Setting& in_force,
    const std::vector<Setting>& settings, const RunOptions& options, int jobs);

}  // namespace fragsim
