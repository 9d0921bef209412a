// A report is a function of results and computes nothing but their form.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/study/result_set.hpp"

namespace fragsim {

struct RenderOptions {
    bool color = false;
    int width = 80;  // columns; 0: not a terminal, one record a line
};

struct ReportInfo {
    std::string_view name;
    std::string_view summary;
    std::string (*render)(const ResultSet& results, const RenderOptions& options);
    bool whole_history =
        false;  // needs Result::history and takes one trace and one policy; its bytes are not for a terminal
};

// Every entry of reports.def.
std::span<const ReportInfo> reports();

}  // namespace fragsim
