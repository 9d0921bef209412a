// A sweep's results as text: one JSON object a line, each with everything needed to know which run it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/study/sweep_run.hpp"

namespace fragsim {

// What tells a run from every other: version, trace by content, device, policy with all parameters, capacity and the
// other options. The path is not in it.
std::string sweep_key(const SweepRun& run, const std::string& tool_version);

// The result as `replay --json` has it, without "run": no time of this machine is in a line. No line end.
std::string sweep_line(const SweepRun& run, const Result& result, const std::string& tool_version);

struct SweepLine {
    std::string key, tool_version;
    bool survives;
};
// None: not a line of a sweep.
std::optional<SweepLine> read_sweep_line(std::string_view line);

// What every line begins with.
inline constexpr std::string_view kSweepLineBegin = R"({"schema":{"name":"fragsim.sweep",)";

}  // namespace fragsim
