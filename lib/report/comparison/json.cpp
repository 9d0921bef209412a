// Everything, for programs: every difference, those within their tolerance too.
#include "lib/report/comparison/report.hpp"
#include "lib/report/json_parts.hpp"

namespace fragsim {
namespace {

Json json_value(const std::optional<Metric>& metric) {
    return metric ? std::visit([](auto value) { return Json(value); }, metric->value) : Json();
}

Json json_difference(const Difference& difference) {
    Json json{{"metric", difference.metric}, {"baseline", json_value(difference.baseline)},
        {"candidate", json_value(difference.candidate)},
        {"change", difference.change ? Json(*difference.change) : Json()},
        {"verdict", difference.missing() ? "missing" : name(difference.verdict)},
        {"within_tolerance", difference.within_tolerance}, {"began", nullptr}};
    if (difference.began) json["began"] = {{"first_op", difference.began->first}, {"last_op", difference.began->last}};
    return json;
}

Json json_run(const ComparedRun& run) {
    Json differences = Json::array();
    for (const Difference& difference : run.differences) differences.push_back(json_difference(difference));
    const char* verdict = !run.problems.empty() ? "not compared"
                          : run.regression()    ? "worse"
                          : run.improvement()   ? "better"
                                                : "same";
    return {{"trace", run.run.trace}, {"gpu", run.run.gpu ? Json(*run.run.gpu) : Json()}, {"policy", run.run.policy},
        {"device", {{"kind", run.run.device}, {"capacity_bytes", json_bytes(run.run.limits.capacity)},
                                  {"memory_limit_bytes", json_bytes(run.run.limits.memory_limit)}}},
        {"verdict", verdict}, {"differences", differences}, {"problems", run.problems}};
}

std::string render(const Comparison& comparison, const RenderOptions&) {
    Json document = json_head("fragsim.comparison", comparison.tool_version, comparison.argv, kLimitsVersion);
    document["command"] = comparison.command;
    document["baseline"] = comparison.baseline;
    document["candidate"] = comparison.candidate.empty() ? Json() : Json(comparison.candidate);
    document["updated"] = comparison.updated;
    document["summary"] = {{"runs", comparison.runs.size()}, {"worse", comparison.regressions()},
        {"better", comparison.improvements()}, {"problems", comparison.problem_count()}};
    document["runs"] = Json::array();
    for (const ComparedRun& run : comparison.runs) document["runs"].push_back(json_run(run));
    document["problems"] = comparison.problems;
    document["run"] = Json::object();
    return to_text(document);
}

}  // namespace

ComparisonReportInfo json_comparison() { return {"json", "every difference, for programs", render}; }

}  // namespace fragsim
