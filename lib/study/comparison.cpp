#include "lib/study/comparison.hpp"

#include <algorithm>
#include <cmath>

namespace fragsim {
namespace {

const Metric* find(const std::vector<Metric>& metrics, std::string_view key) {
    const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.key == key; });
    return found == metrics.end() ? nullptr : &*found;
}

const Course* find(const std::vector<Course>& courses, std::string_view key) {
    const auto found = std::find_if(courses.begin(), courses.end(), [&](const Course& c) { return c.key == key; });
    return found == courses.end() ? nullptr : &*found;
}

double allowance_for(const Tolerances& tolerances, const std::string& key, double baseline) {
    for (const auto& [metric, text] : tolerances)
        if (metric == key) return parse_tolerance(*find_metric(key), text).allowance(baseline);
    return 0;
}

// candidate - baseline; 0 where ratios or times agree to nine digits. Integers are subtracted as such: they are >= 0,
// and no difference between large ones may get lost.
double difference_of(const Metric& baseline, const Metric& candidate) {
    const auto* was = std::get_if<std::int64_t>(&baseline.value);
    const auto* is = std::get_if<std::int64_t>(&candidate.value);
    if (was && is) return static_cast<double>(*is - *was);
    const double by = real(candidate) - real(baseline);
    return std::abs(by) <= 1e-9 * std::max(std::abs(real(baseline)), std::abs(real(candidate))) ? 0 : by;
}

Judgement judge(const std::string& key, double change) {
    const MetricInfo* info = find_metric(key);
    if (!info || info->better == Better::neither) return Judgement::changed;
    return (change < 0) == (info->better == Better::lower) ? Judgement::better : Judgement::worse;
}

// A count that the baseline has none of.
Difference counted(const char* metric, std::int64_t count, Judgement verdict, std::uint32_t first_op) {
    Difference difference;
    difference.metric = metric;
    difference.baseline = Metric{metric, std::int64_t{0}};
    difference.candidate = Metric{metric, count};
    difference.verdict = verdict;
    difference.began = OpRange{first_op, first_op};
    return difference;
}

void compare_ooms(const RunFigures& baseline, const RunFigures& candidate, const Tolerances& tolerances,
    std::vector<Difference>& differences) {
    const bool all_known = baseline.oom_count <= static_cast<std::int64_t>(baseline.ooms.size());
    std::vector<std::uint32_t> before, fresh;
    for (const RunFigures::OomAt& oom : baseline.ooms) before.push_back(oom.op);
    std::sort(before.begin(), before.end());  // files may have been edited
    for (const RunFigures::OomAt& oom : candidate.ooms) {
        const bool known = all_known || (!before.empty() && oom.op <= before.back());
        if (known && !std::binary_search(before.begin(), before.end(), oom.op)) fresh.push_back(oom.op);
    }
    if (fresh.empty()) return;
    const auto count = static_cast<std::int64_t>(fresh.size());
    Difference& difference = differences.emplace_back(counted(kNewOoms, count, Judgement::worse, fresh.front()));
    const double allowance = allowance_for(tolerances, "num_ooms", static_cast<double>(baseline.oom_count));
    difference.within_tolerance = static_cast<double>(count) <= allowance;
}

void compare_recorded_ooms(
    const RunFigures& baseline, const RunFigures& candidate, std::vector<Difference>& differences) {
    std::vector<std::uint32_t> refused, served;
    // By place: the trace is the same, so its recorded failures are.
    for (std::size_t i = 0; i < std::min(baseline.recorded_ooms.size(), candidate.recorded_ooms.size()); ++i) {
        const RecordedOomAnswer& before = baseline.recorded_ooms[i];
        const RecordedOomAnswer& now = candidate.recorded_ooms[i];
        if (before.served != now.served) (now.served ? served : refused).push_back(now.op);
    }
    const auto add = [&](const char* metric, Judgement verdict, const std::vector<std::uint32_t>& ops) {
        if (!ops.empty())
            differences.push_back(counted(metric, static_cast<std::int64_t>(ops.size()), verdict, ops.front()));
    };
    add(kNewlyRefused, Judgement::worse, refused);
    add(kNewlyServed, Judgement::better, served);
}

}  // namespace

const char* name(Judgement verdict) {
    switch (verdict) {
        case Judgement::same: return "same";
        case Judgement::better: return "better";
        case Judgement::worse: return "worse";
        case Judgement::changed: return "changed";
    }
    return "";
}

RunFigures figures_of(const Result& result) {
    RunFigures figures;
    figures.metrics = result.metrics;
    for (const Oom& oom : result.ooms) figures.ooms.push_back({oom.op, oom.requested, name(oom.cause)});
    figures.oom_count = static_cast<std::int64_t>(figures.ooms.size());
    figures.recorded_ooms = result.recorded_ooms;
    figures.courses = result.courses;
    return figures;
}

bool is_judged(std::string_view key, bool times) {
    const MetricInfo* info = find_metric(key);
    if (!info) return false;
    if (info->unit == Unit::nanoseconds && !times) return false;
    return info->better != Better::neither || key == "load_bytes" || key == "requested_bytes.all.peak";
}

std::vector<Difference> compare_figures(
    const RunFigures& baseline, const RunFigures& candidate, const Tolerances& tolerances) {
    std::vector<Difference> differences;
    for (const Metric& before : baseline.metrics) {
        const Metric* now = find(candidate.metrics, before.key);
        const double by = now ? difference_of(before, *now) : 0;
        if (now && by == 0) continue;
        Difference difference;
        difference.metric = before.key;
        difference.baseline = before;
        if (now) {
            const double was = real(before);
            const double allowance = allowance_for(tolerances, before.key, was);
            difference.candidate = *now;
            difference.verdict = judge(before.key, by);
            difference.within_tolerance = std::abs(by) <= allowance;
            if (was != 0) difference.change = by / was;
            const Course* course_before = find(baseline.courses, before.key);
            const Course* course_now = find(candidate.courses, before.key);
            if (difference.verdict == Judgement::worse && course_before && course_now)
                difference.began = began(*course_before, *course_now, difference.within_tolerance ? 0 : allowance);
        }
        differences.push_back(std::move(difference));
    }
    for (const Metric& now : candidate.metrics) {
        if (find(baseline.metrics, now.key)) continue;
        Difference& difference = differences.emplace_back();
        difference.metric = now.key;
        difference.candidate = now;
    }
    compare_ooms(baseline, candidate, tolerances, differences);
    compare_recorded_ooms(baseline, candidate, differences);
    return differences;
}

bool ComparedRun::regression() const {
    return std::any_of(differences.begin(), differences.end(), [](const Difference& d) { return d.regression(); });
}

bool ComparedRun::improvement() const {
    return !regression() &&
           std::any_of(differences.begin(), differences.end(), [](const Difference& d) { return d.improvement(); });
}

std::size_t Comparison::regressions() const {
    return static_cast<std::size_t>(
        std::count_if(runs.begin(), runs.end(), [](const ComparedRun& run) { return run.regression(); }));
}

std::size_t Comparison::improvements() const {
    return static_cast<std::size_t>(
        std::count_if(runs.begin(), runs.end(), [](const ComparedRun& run) { return run.improvement(); }));
}

std::size_t Comparison::with_problems() const {
    return static_cast<std::size_t>(
        std::count_if(runs.begin(), runs.end(), [](const ComparedRun& run) { return !run.problems.empty(); }));
}

std::size_t Comparison::problem_count() const {
    std::size_t count = problems.size();
    for (const ComparedRun& run : runs) count += run.problems.size();
    return count;
}

}  // namespace fragsim
