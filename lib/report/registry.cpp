#include <array>

#include "lib/report/report.hpp"

namespace fragsim {

#define FRAGSIM_REPORT(name) ReportInfo name##_report();
#include "lib/report/reports.def"
#undef FRAGSIM_REPORT

std::span<const ReportInfo> reports() {
    static const std::array all{
#define FRAGSIM_REPORT(name) name##_report(),
#include "lib/report/reports.def"
#undef FRAGSIM_REPORT
    };
    return all;
}

}  // namespace fragsim
