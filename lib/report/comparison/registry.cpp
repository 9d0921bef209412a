#include <array>

#include "lib/report/comparison/report.hpp"

namespace fragsim {

#define FRAGSIM_COMPARISON_REPORT(name) ComparisonReportInfo name##_comparison();
#include "lib/report/comparison/reports.def"
#undef FRAGSIM_COMPARISON_REPORT

std::span<const ComparisonReportInfo> comparison_reports() {
    static const std::array all{
#define FRAGSIM_COMPARISON_REPORT(name) name##_comparison(),
#include "lib/report/comparison/reports.def"
#undef FRAGSIM_COMPARISON_REPORT
    };
    return all;
}

}  // namespace fragsim
