#include "lib/report/comparison/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"

namespace fragsim {
namespace {

Unit unit_of(const std::string& key) {
    const MetricInfo* info = find_metric(key);
    return info ? info->unit : Unit::count;
}

std::string rounded(const Metric& metric) {
    if (find_metric(metric.key)) return format_metric(metric);
    if (const auto* whole = std::get_if<std::int64_t>(&metric.value)) return format_count(*whole);
    return fmt::format("{:.4g}", std::get<double>(metric.value));
}

std::string in_full(const Metric& metric) {
    switch (unit_of(metric.key)) {
        case Unit::bytes: return format_count(std::llround(real(metric))) + " B";
        case Unit::count: return format_count(std::llround(real(metric)));
        case Unit::ratio: return fmt::format("{:.9g}", real(metric));
        case Unit::nanoseconds: return fmt::format("{:.9g} ns", real(metric));
    }
    return {};
}

std::string change_of(const Difference& difference) {
    if (difference.missing()) return "";
    const double was = real(*difference.baseline), is = real(*difference.candidate);
    const std::string percent = format_change(is, was);
    if (was != 0 && percent != "+0.0 %" && percent != "-0.0 %") return percent;
    Metric by = *difference.candidate;  // too little for per cent, or of nothing
    std::visit(
        [&](auto& value) { value -= std::get<std::decay_t<decltype(value)>>(difference.baseline->value); }, by.value);
    return (is > was ? "+" : "") + in_full(by);
}

std::string range(const OpRange& ops) {
    return ops.first == ops.last ? format_count(ops.first)
                                 : fmt::format("{}..{}", format_count(ops.first), format_count(ops.last));
}

int rank(const Difference& difference) {
    if (difference.missing()) return 3;
    return difference.verdict == Judgement::worse ? 0 : difference.verdict == Judgement::changed ? 1 : 2;
}

}  // namespace

std::string limit_text(std::optional<Bytes> limit) {
    if (!limit) return "none";
    std::string text = format_size(*limit);
    std::string written = text;
    std::erase(written, ' ');
    // Where three digits do not tell it from others, all of them.
    return parse_size(written) == *limit ? text : format_count(*limit) + " B";
}

bool any_memory_limit(const Comparison& comparison) {
    return std::any_of(comparison.runs.begin(), comparison.runs.end(),
        [](const ComparedRun& run) { return run.run.limits.memory_limit.has_value(); });
}

std::string setup_of(const RunName& run) {
    std::string text = run.policy;
    if (run.limits.capacity) text += ", capacity " + limit_text(run.limits.capacity);
    if (run.limits.memory_limit) text += ", memory limit " + limit_text(run.limits.memory_limit);
    if (run.gpu) text += fmt::format(", device {}", *run.gpu);
    if (run.device != "host") text += ", on " + run.device;
    return text;
}

std::string title_of(const RunName& run) { return run.trace + ", " + setup_of(run); }

DifferenceWords words_of(const Difference& difference) {
    DifferenceWords words;
    words.metric = difference.metric;
    words.baseline = difference.baseline ? rounded(*difference.baseline) : "missing";
    words.now = difference.candidate ? rounded(*difference.candidate) : "missing";
    if (words.baseline == words.now) {
        words.baseline = in_full(*difference.baseline);
        words.now = in_full(*difference.candidate);
    }
    words.change = change_of(difference);
    words.verdict = difference.missing() ? "missing" : name(difference.verdict);
    if (difference.began) words.began = range(*difference.began);
    return words;
}

std::vector<const Difference*> shown_differences(const ComparedRun& run) {
    std::vector<const Difference*> shown;
    for (const Difference& difference : run.differences)
        if (!difference.within_tolerance) shown.push_back(&difference);
    std::stable_sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) { return rank(*a) < rank(*b); });
    return shown;
}

std::string headline(const ComparedRun& run) {
    if (!run.problems.empty()) {
        const std::size_t more = run.problems.size() - 1;
        return run.problems.front() + (more ? fmt::format("; and {} more", more) : "");
    }
    const std::vector<const Difference*> shown = shown_differences(run);
    if (shown.empty()) return "as in the baseline";
    const DifferenceWords words = words_of(*shown.front());
    std::string text = fmt::format(
        "{} is {}: {} instead of {}, {}", words.metric, words.verdict, words.now, words.baseline, words.change);
    if (const auto& began = shown.front()->began)
        text += began->first == began->last ? fmt::format(", from op {} on", format_count(began->first))
                                            : fmt::format(", from an op between {} and {} on",
                                                  format_count(began->first), format_count(began->last));
    if (shown.size() > 1) text += fmt::format("; and {} more", shown.size() - 1);
    return text;
}

TextTable table_of(const std::vector<const Difference*>& differences) {
    TextTable table({{"metric", TextTable::Align::left}, {"baseline"}, {"now"}, {"change"},
        {"verdict", TextTable::Align::left}, {"began at op"}});
    for (const Difference* difference : differences) {
        const DifferenceWords words = words_of(*difference);
        table.add({{words.metric}, {words.baseline}, {words.now}, {words.change}, {words.verdict}, {words.began}});
    }
    return table;
}

std::string summary(const Comparison& comparison) {
    const std::size_t all = comparison.runs.size();
    if (all == 0) return "nothing was compared";
    std::size_t added = 0, same = 0;
    for (const ComparedRun& run : comparison.runs) {
        added += run.added;
        same += run.problems.empty() && !run.added && !run.regression() && !run.improvement();
    }
    std::string text = fmt::format("{} run{}: ", all, all == 1 ? "" : "s");
    const char* separator = "";
    const auto add = [&](std::size_t count, const char* what) {
        if (count == 0) return;
        text += fmt::format("{}{} {}", separator, count, what);
        separator = ", ";
    };
    if (same == all) {
        text += "all as in the baseline";
    } else {
        add(added, "new");
        add(comparison.regressions(), "worse");
        add(comparison.improvements(), "better");
        add(same, "the same");
        add(comparison.with_problems(), "not compared");
    }
    if (const std::size_t more = comparison.problems.size()) text += fmt::format("; {} not listed", more);
    return text;
}

std::string advice(const Comparison& comparison) {
    if (comparison.command != "check" || comparison.updated) return "";
    const std::string update = fmt::format("fragsim check --baseline {} --update", comparison.baseline);
    if (comparison.regressions() > 0) return "if this is meant: " + update;
    if (comparison.improvements() > 0) return "to keep what got better: " + update;
    return "";
}

}  // namespace fragsim
