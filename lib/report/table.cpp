// A row a policy, or for several traces a row a trace: who survives, what it costs, the best of each column starred,
// change against the first.
#include <fmt/format.h>

#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"
#include "lib/report/report.hpp"
#include "lib/report/result_table.hpp"
#include "lib/report/setting_words.hpp"
#include "lib/study/outlier.hpp"

namespace fragsim {
namespace {

std::string policies_on_a_trace(const TraceResults& on_trace, const RenderOptions& options) {
    const Result& first = on_trace.results.front();
    std::string out = fmt::format("{}, device {}: {} ops, {}; at least {} are needed\n", on_trace.recording->path,
        on_trace.trace->device, format_count(on_trace.trace->ops), describe(first.limits),
        format_size(summarize(*on_trace.trace).load));
    if (const std::string start = start_words(first.start_from); !start.empty())
        out += wrapped(start + '\n', options.width);
    out += '\n';
    std::vector<std::string> labels;
    std::vector<const Result*> results;
    for (const Result& result : on_trace.results) labels.push_back(result.label), results.push_back(&result);
    out += result_table("policy", labels, results).render(options.width, options.color);
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
    std::string out = fmt::format("{}, {}\n\n", results.front()->label, describe(results.front()->limits));
    out += result_table("trace", labels, results).render(options.width, options.color);
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
