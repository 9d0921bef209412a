#include "apps/fragsim/compare_stored.hpp"

#include <fmt/format.h>

#include "apps/fragsim/report_outputs.hpp"
#include "lib/core/error.hpp"
#include "lib/report/result_file.hpp"

namespace fragsim {
namespace {

bool is_result(const std::string& path) {
    if (path == "-") return false;  // reading it here would leave nothing for the trace's reader
    const std::string schema = stored_schema(path);
    if (schema.empty()) return false;
    if (schema == kResultSchema) return true;
    throw Error(ErrorCode::usage, fmt::format("{} is a {}, not a result", path, schema),
        schema == "fragsim.baseline" ? fmt::format("fragsim check --baseline {}", path)
                                     : "compare takes what replay --json and compare --json wrote");
}

}  // namespace

std::optional<int> compare_stored(
    const ReplayChoice& replay, const std::vector<std::string>& replaying, bool fail, const Invocation& invocation) {
    std::vector<std::string> results, others;
    for (const std::string& path : replay.traces) (is_result(path) ? results : others).push_back(path);
    if (results.empty()) {
        if (fail)
            throw Error(ErrorCode::usage, "--fail-on-regression is for two stored results",
                "fragsim check compares traces with a baseline");
        return {};
    }
    if (!others.empty())
        throw Error(ErrorCode::usage, fmt::format("{} is a stored result, {} is none", results.front(), others.front()),
            "compare two stored results, or traces; fragsim replay TRACE --report json=FILE stores a result");
    if (results.size() != 2)
        throw Error(ErrorCode::usage, fmt::format("{} stored results, compare takes two", results.size()),
            "fragsim compare BASELINE.json CANDIDATE.json");
    if (!replaying.empty())
        throw Error(ErrorCode::usage, "stored results are compared as they are, nothing is replayed",
            fmt::format("leave out {}", fmt::join(replaying, ", ")));

    ComparisonOutputs outputs(replay.reports, replay.json, "table", invocation.force);
    Comparison comparison = compare_results(results[0], results[1]);
    comparison.tool_version = FRAGSIM_VERSION;
    comparison.argv = invocation.argv;
    outputs.write(comparison, invocation);
    for (const ComparedRun& run : comparison.runs)
        for (const std::string& problem : run.problems)
            print_diagnostic("error", fmt::format("{}, {}: {}", run.run.trace, run.run.policy, problem));
    if (comparison.problem_count() > 0) {
        fmt::print(stderr, "hint: both results have to be of the same traces, policies and capacities\n");
        return 3;
    }
    return fail && comparison.regressions() > 0 ? 1 : 0;
}

}  // namespace fragsim
