#include "lib/study/baseline.hpp"

#include "lib/core/limits.hpp"

namespace fragsim {
namespace {

Limits limits(const BaselineEntry& entry) { return parse_limits(entry.capacity, entry.memory_limit); }

}  // namespace

RunFigures kept_figures(RunFigures figures) {
    std::erase_if(figures.metrics, [](const Metric& metric) { return !is_judged(metric.key, true); });
    if (figures.ooms.size() > BaselineEntry::kMaxOoms) figures.ooms.resize(BaselineEntry::kMaxOoms);
    for (Course& course : figures.courses) course = thin(std::move(course), BaselineEntry::kMaxCoursePoints);
    return figures;
}

bool same_run(const BaselineEntry& a, const BaselineEntry& b) {
    return a.trace == b.trace && a.gpu == b.gpu && a.policy == b.policy && limits(a) == limits(b);
}

}  // namespace fragsim
