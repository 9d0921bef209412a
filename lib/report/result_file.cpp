#include "lib/report/result_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/core/sizes.hpp"
#include "lib/report/figures_reader.hpp"
#include "lib/trace/input.hpp"

namespace fragsim {
namespace {

constexpr const char* kHint = "fragsim replay TRACE --report json=FILE writes one";

struct StoredTrace {
    std::string path, sha256;
    int device;
};

StoredTrace read_trace(const JsonReader& json) {
    const auto hash = json.find("sha256");
    if (!hash) json.refuse("without a sha256 nobody knows which trace it is");
    return {json.at("path").text(), hash->text(), read_gpu(json.at("device"))};
}

std::string printed(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

RunFigures read_figures(const JsonReader& json) {
    RunFigures figures;
    figures.metrics = read_metrics(json.at("metrics"));
    figures.ooms = read_ooms(json.at("ooms"));
    figures.oom_count = static_cast<std::int64_t>(figures.ooms.size());
    figures.recorded_ooms = read_recorded_ooms(json.at("recorded_ooms"));
    return figures;
}

StoredRun read_run(const JsonReader& json, const std::vector<StoredTrace>& traces, int version) {
    StoredRun run;
    const auto index = json.find("trace");
    const std::size_t trace = index ? static_cast<std::size_t>(index->integer()) : 0;
    if (trace >= traces.size()) json.refuse(fmt::format("there is no trace {}", trace));
    run.name.trace = traces[trace].path;
    run.name.gpu = traces[trace].device;
    run.trace_sha256 = traces[trace].sha256;
    run.policy = json.at("policy").at("name").text();
    for (const auto& [key, value] : json.at("policy").at("params").members())
        run.parameters.emplace_back(key, printed(value.value()));
    std::sort(run.parameters.begin(), run.parameters.end());  // whatever tool the file went through
    const JsonReader device = json.at("device");
    run.name.device = device.at("kind").text();
    Limits& limits = run.name.limits;
    if (const auto capacity = device.find("capacity_bytes")) limits.capacity = capacity->integer();
    if (const auto memory_limit = device.find("memory_limit_bytes")) limits.memory_limit = memory_limit->integer();
    if (capacity_was_memory_limit(version, run.policy)) std::swap(limits.capacity, limits.memory_limit);
    run.figures = read_figures(json);
    return run;
}

bool same_run(const StoredRun& a, const StoredRun& b) {
    return a.trace_sha256 == b.trace_sha256 && a.name.gpu == b.name.gpu && a.name.device == b.name.device &&
           a.name.limits == b.name.limits && a.policy == b.policy && a.parameters == b.parameters;
}

// A policy by its name and those of its parameters that some other run of it has otherwise.
void name_policies(std::vector<StoredRun*> runs) {
    for (StoredRun* run : runs) {
        run->name.policy = run->policy;
        char separator = ':';
        for (const auto& parameter : run->parameters) {
            const bool telling = std::any_of(runs.begin(), runs.end(), [&](const StoredRun* other) {
                return other->policy == run->policy && std::find(other->parameters.begin(), other->parameters.end(),
                                                           parameter) == other->parameters.end();
            });
            if (!telling) continue;
            run->name.policy += fmt::format("{}{}={}", separator, parameter.first, parameter.second);
            separator = ',';
        }
    }
}

ComparedRun with_problem(const StoredRun& run, std::string problem) {
    ComparedRun compared{run.name, {}, {}, run.figures.metrics};
    compared.problems.push_back(std::move(problem));
    return compared;
}

}  // namespace

std::string stored_schema(const std::string& path) {
    // Of a trace, which may be large, no more is read than that.
    if (!begins_like_ours(Input(path).head())) return "";
    return schema_name(read_text(path));
}

std::vector<StoredRun> read_results(const std::string& path) {
    const Json document = parse_json(read_text(path), path, kHint);
    const JsonReader json(document, path, kHint);
    const int version = check_schema(json, kResultSchema);

    std::vector<StoredTrace> traces;
    if (const auto several = json.find("traces")) {
        for (const JsonReader& trace : several->elements()) traces.push_back(read_trace(trace));
    } else {
        traces.push_back(read_trace(json.at("trace")));
    }
    std::vector<StoredRun> runs;
    for (const JsonReader& run : json.at("results").elements()) runs.push_back(read_run(run, traces, version));
    if (runs.empty()) json.at("results").refuse("nothing to compare");
    return runs;
}

Comparison compare_results(const std::string& baseline_path, const std::string& candidate_path) {
    std::vector<StoredRun> baseline = read_results(baseline_path), candidate = read_results(candidate_path);
    std::vector<StoredRun*> all;
    for (std::vector<StoredRun>* runs : {&baseline, &candidate})
        for (StoredRun& run : *runs) all.push_back(&run);
    name_policies(all);

    Comparison comparison;
    comparison.command = "compare";
    comparison.baseline = baseline_path;
    comparison.candidate = candidate_path;
    const auto count = [](const std::vector<StoredRun>& runs, const StoredRun& wanted) {
        return std::count_if(runs.begin(), runs.end(), [&](const StoredRun& run) { return same_run(run, wanted); });
    };
    for (const StoredRun& before : baseline) {
        const auto now = std::find_if(
            candidate.begin(), candidate.end(), [&](const StoredRun& run) { return same_run(run, before); });
        if (now == candidate.end())
            comparison.runs.push_back(with_problem(before, fmt::format("not in {}", candidate_path)));
        else if (count(baseline, before) > 1 || count(candidate, before) > 1)
            comparison.runs.push_back(with_problem(before, "there more than once"));
        else
            comparison.runs.push_back(
                {now->name, compare_figures(before.figures, now->figures), {}, now->figures.metrics});
    }
    for (const StoredRun& now : candidate)
        if (count(baseline, now) == 0)
            comparison.runs.push_back(with_problem(now, fmt::format("not in {}", baseline_path)));
    return comparison;
}

}  // namespace fragsim
