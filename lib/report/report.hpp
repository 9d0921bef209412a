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

// What a report needs beyond what every run gives.
struct ReportNeeds {
    bool history = false;  // Result::history and Result::start
    bool series = false;   // Result::series
    bool one_run = false;  // one trace and one policy
    bool file = false;     // its bytes are not for a terminal
};

struct ReportInfo {
    using Content = ResultSet;

    std::string_view name;
    std::string_view summary;
    std::string (*render)(const ResultSet& results, const RenderOptions& options);
    ReportNeeds needs = {};
};

// Every entry of reports.def.
std::span<const ReportInfo> reports();

}  // namespace fragsim
