// What `inspect` prints.
#pragma once

#include <string>
#include <vector>

#include "lib/report/report.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

std::string inspection_text(const Recording& recording);
std::string inspection_json(const std::vector<Recording>& recordings, const std::string& tool_version, const std::vector<std::string>& argv);

}  // namespace fragsim
