// fragsim list: what there is to choose from, read from the tables themselves.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/output_file.hpp"
#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"
#include "lib/metrics/catalog.hpp"
#include "lib/report/comparison/report.hpp"
#include "lib/report/listing.hpp"
#include "lib/report/report.hpp"
#include "policies/registry.hpp"
#include "traces/registry.hpp"

namespace fragsim {
namespace {

std::string list_policies() {
    std::string out;
    for (const PolicyInfo& policy : policies()) {
        out += fmt::format("{}{}\n", out.empty() ? "" : "\n", policy.name);
        std::string_view summary = policy.summary;
        while (!summary.empty()) {
            const std::size_t end = std::min(summary.find('\n'), summary.size());
            out += fmt::format("  {}\n", summary.substr(0, end));
            summary.remove_prefix(std::min(end + 1, summary.size()));
        }
        out += fmt::format("  after {}\n", policy.reference);
        for (const PolicyParameter& parameter : policy.parameters) {
            const bool required =
                std::find(policy.required.begin(), policy.required.end(), parameter.name) != policy.required.end();
            out += fmt::format("    {:<28} {} [{}; {}]\n", parameter.name, parameter.description, parameter.unit,
                required ? "required" : parameter.default_value);
        }
    }
    return out;
}

std::string list_formats() {
    std::string out;
    for (const FormatInfo& format : trace_formats()) out += fmt::format("{:<18} {}\n", format.name, format.summary);
    return out + "gzip and zstd are opened transparently; a format is recognised by its content\n";
}

std::string list_reports() {
    std::string out;
    for (const ReportInfo& report : reports()) out += fmt::format("{:<18} {}\n", report.name, report.summary);
    out += "\nof check, and of compare with two stored results:\n";
    for (const ComparisonReportInfo& report : comparison_reports())
        out += fmt::format("{:<18} {}\n", report.name, report.summary);
    return out;
}

std::string list_metrics() {
    static constexpr const char* kUnits[] = {"bytes", "count", "ratio", "ns"};
    static constexpr const char* kBetter[] = {"lower", "higher", ""};
    std::string out;
    for (const MetricInfo& metric : metric_catalog())
        out += fmt::format("{:<44} {:<6} {:<7} {}\n", metric.key, kUnits[static_cast<int>(metric.unit)],
            kBetter[static_cast<int>(metric.better)], metric.description);
    return out;
}

struct Kind {
    std::string_view name;
    std::string (*text)();
};
constexpr Kind kKinds[] = {
    {"policies", list_policies}, {"formats", list_formats}, {"metrics", list_metrics}, {"reports", list_reports}};

struct Options {
    std::string what;
    bool json = false;
};

int run(const Options& options, const Invocation& invocation) {
    std::vector<std::string_view> names;
    for (const Kind& kind : kKinds) names.push_back(kind.name);
    if (!options.what.empty() && std::find(names.begin(), names.end(), options.what) == names.end())
        throw Error(ErrorCode::usage, fmt::format("nothing to list is called '{}'", options.what),
            suggestion(options.what, names));
    if (options.json) {
        write_stdout(listing_json({policies(), trace_formats()}, options.what, FRAGSIM_VERSION, invocation.argv));
        return 0;
    }
    for (const Kind& kind : kKinds)
        if (kind.name == (options.what.empty() ? "policies" : options.what)) write_stdout(kind.text());
    return 0;
}

}  // namespace

void add_list_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand("list", "The policies, formats, metrics and reports there are");
    auto options = std::make_shared<Options>();
    command->add_option("WHAT", options->what, "policies, formats, metrics or reports (policies;\nwith --json all)")
        ->type_name("");
    command->add_flag("--json", options->json, "one JSON document")->group("Output");
    command->footer("example:\n  fragsim list policies");
    command->callback(
        [options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
