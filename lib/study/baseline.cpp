#include "lib/study/baseline.hpp"

#include "lib/core/sizes.hpp"

namespace fragsim {
namespace {

std::optional<Bytes> bound(const BaselineEntry& entry) {
    return entry.capacity.empty() ? std::nullopt : std::optional(parse_size(entry.capacity));
}

}  // namespace

RunFigures kept_figures(RunFigures figures) {
    std::erase_if(figures.metrics, [](const Metric& metric) { return !is_judged(metric.key, true); });
    if (figures.ooms.size() > BaselineEntry::kMaxOoms) figures.ooms.resize(BaselineEntry::kMaxOoms);
    for (Course& course : figures.courses) course = thin(std::move(course), BaselineEntry::kMaxCoursePoints);
    return figures;
}

bool same_run(const BaselineEntry& a, const BaselineEntry& b) {
    return a.trace == b.trace && a.gpu == b.gpu && a.policy == b.policy && bound(a) == bound(b);
}

}  // namespace fragsim
