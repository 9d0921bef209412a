// What `tune` prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/report/report.hpp"
#include "lib/study/tune.hpp"

namespace fragsim {

struct TunedTraces {
    std::vector<const Recording*> recordings;  // by run of the task
    const TuneTask* task;
    Tuning tuning;
};

std::string tuning_text(const TunedTraces& tuned, const RenderOptions& options);
std::string tuning_json(
    const TunedTraces& tuned, const std::string& tool_version, const std::vector<std::string>& argv);

// The best, the best of few settings, what is in force, the default and expandable segments: in this order, each once.
std::vector<std::size_t> rows_always_shown(const Tuning& tuning);
// The limit that all runs have; none: they have none, or different ones.
std::optional<Bytes> common_bound(const TuneTask& task);

// "57", "57 to 63"; a value that is not set is "unset".
std::string values_of(const SettingKey& key, std::int64_t low, std::int64_t high);

}  // namespace fragsim
