// A row a policy, or for several traces a row a trace: who survives, what it costs, the best of each column starred,
// change against the first.
#include <fmt/format.h>

#include <algorithm>

#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"
#include "lib/report/report.hpp"
#include "lib/report/text_table.hpp"
#include "lib/study/outlier.hpp"

namespace fragsim {
namespace {

std::string survival(const Result& result) {
    if (result.survives()) return "yes";
    if (result.outcome.ooms > 0) return fmt::format("no, {} OOM", format_count(result.outcome.ooms));
    return "no";  // only the request that failed in the recorded run
}

// Stars the rows with the smallest value of a metric, unless all have it.
std::vector<bool> best(const std::vector<const Result*>& results, std::string_view key) {
    std::vector<double> values;
    for (const Result* result : results) values.push_back(result->real(key));
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    std::vector<bool> stars;
    for (const double value : values) stars.push_back(*low != *high && value == *low);
    return stars;
}

std::string recorded_oom_lines(const std::vector<Result>& results) {
    std::string out;
    for (std::size_t i = 0; i < results.front().recorded_ooms.size(); ++i) {
        const RecordedOomAnswer& recorded = results.front().recorded_ooms[i];
        out += fmt::format(
            "recorded out of memory before op {} ({}):", format_count(recorded.op), format_size(recorded.requested));
        for (const bool served : {true, false}) {
            std::string who;
            for (const Result& result : results)
                if (result.recorded_ooms[i].served == served) who += (who.empty() ? "" : ", ") + result.label;
            if (!who.empty()) out += fmt::format("\n  {} by {}", served ? "served" : "refused", who);
        }
        out += '\n';
    }
    return out;
}

const std::vector<TextTable::Column> kColumns{{"", TextTable::Align::left}, {"survives", TextTable::Align::left},
    {"reserved"}, {"change"}, {"over need"}, {"retries"}, {"driver"}};

// Rows of results that are alike but for their policy or their trace; changes are against the first.
TextTable table_of(
    const std::string& title, const std::vector<std::string>& labels, const std::vector<const Result*>& results) {
    std::vector<TextTable::Column> columns = kColumns;
    columns.front().title = title;
    TextTable table(columns);
    const auto reserved_stars = best(results, "reserved_bytes.all.peak"),
               retry_stars = best(results, "num_alloc_retries"), driver_stars = best(results, "driver_time_ns");
    for (std::size_t i = 0; i < results.size(); ++i) {
        const Result& result = *results[i];
        table.add(
            {{labels[i]}, {survival(result)}, {format_size(result.count("reserved_bytes.all.peak")), reserved_stars[i]},
                {i == 0 ? ""
                        : format_change(result.real("reserved_bytes.all.peak"),
                              results.front()->real("reserved_bytes.all.peak"))},
                {format_ratio(result.real("overhead_over_load"))},
                {format_count(result.count("num_alloc_retries")), retry_stars[i]},
                {format_duration(result.real("driver_time_ns")), driver_stars[i]}});
    }
    return table;
}

std::string policies_on_a_trace(const TraceResults& on_trace, const RenderOptions& options) {
    const Result& first = on_trace.results.front();
    std::string out = fmt::format("{}, device {}: {} ops, {}; at least {} are needed\n\n", on_trace.recording->path,
        on_trace.trace->device, format_count(on_trace.trace->ops),
        first.capacity ? "capacity " + format_size(*first.capacity) : "no capacity limit",
        format_size(first.count("load_bytes")));
    std::vector<std::string> labels;
    std::vector<const Result*> results;
    for (const Result& result : on_trace.results) labels.push_back(result.label), results.push_back(&result);
    out += table_of("policy", labels, results).render(options.width, options.color);
    if (const std::string lines = recorded_oom_lines(on_trace.results); !lines.empty()) out += '\n' + lines;
    return out;
}

// Ranks of one job, or devices: a row each, the one that stands out named with what is different about its program.
std::string traces_under_a_policy(const ResultSet& set, std::size_t policy, const RenderOptions& options) {
    std::vector<std::string> labels;
    std::vector<const Result*> results;
    std::vector<TraceSummary> summaries;
    std::vector<double> reserved;
    for (const TraceResults& on_trace : set.traces) {
        labels.push_back(fmt::format("{}, device {}", on_trace.recording->path, on_trace.trace->device));
        results.push_back(&on_trace.results[policy]);
        summaries.push_back(summarize(*on_trace.trace));
        reserved.push_back(results.back()->real("reserved_bytes.all.peak"));
    }
    const auto outlier = find_outlier(reserved, summaries);
    if (outlier) labels[outlier->index] += " < outlier";
    std::string out = fmt::format("{}, {}\n\n", results.front()->label,
        results.front()->capacity ? "capacity " + format_size(*results.front()->capacity) : "no capacity limit");
    out += table_of("trace", labels, results).render(options.width, options.color);
    if (!outlier) return out;
    out += fmt::format(
        "\noutlier: trace {} reserves {:+.1f} % against the median\n", outlier->index + 1, 100 * outlier->difference);
    for (const std::string& reason : outlier->reasons) out += fmt::format("  {}\n", reason);
    if (outlier->reasons.empty()) out += "  its program asks for the same; order and timing differ\n";
    return out;
}

std::string render(const ResultSet& set, const RenderOptions& options) {
    if (set.traces.empty() || set.traces.front().results.empty()) return "";
    if (set.traces.size() == 1) return policies_on_a_trace(set.traces.front(), options);
    std::string out;
    for (std::size_t policy = 0; policy < set.traces.front().results.size(); ++policy) {
        if (policy > 0) out += '\n';
        out += traces_under_a_policy(set, policy, options);
    }
    return out;
}

}  // namespace

ReportInfo table_report() {
    return {"table",
        "a row a policy, or a row a trace where there are several: survival, peak reserved, retries, driver time",
        render};
}

}  // namespace fragsim
