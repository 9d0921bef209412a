// What `inspect` prints.
#pragma once

#include <string>
#include <vector>

#include "lib/report/report.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

std::string inspection_text(const Recording& recording);
// A line a trace, for ranks or devices that should do the same; the one that does not is marked.
std::string ranks_text(const std::vector<Recording>& recordings, const RenderOptions& options);
std::string inspection_json(
    const std::vector<Recording>& recordings, const std::string& tool_version, const std::vector<std::string>& argv);

}  // namespace fragsim
