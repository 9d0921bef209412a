// Reports of a comparison. They are apart from those of results (lib/report/report.hpp): what they show is what differs
// between two sides, which a result does not have. Only Bencher wants the figures themselves, and is there for both.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lib/report/report.hpp"
#include "lib/study/comparison.hpp"

namespace fragsim {

struct ComparisonReportInfo {
    using Content = Comparison;

    std::string_view name;
    std::string_view summary;
    std::string (*render)(const Comparison& comparison, const RenderOptions& options);
};

// Every entry of reports.def.
std::span<const ComparisonReportInfo> comparison_reports();

}  // namespace fragsim
