// Everything, for programs: integers of bytes, ratios from 0 to 1, times in nanoseconds; what varies from run to run is
// under "run".
#include "lib/report/json_parts.hpp"
#include "lib/report/report.hpp"

namespace fragsim {
namespace {

// Parameters as JSON's own types where they are numbers or truth values.
Json json_parameter(const std::string& value) {
    if (value == "True" || value == "true") return true;
    if (value == "False" || value == "false") return false;
    const Json parsed = Json::parse(value, nullptr, false);
    return parsed.is_number_integer() ? parsed : Json(value);
}

Json json_result(const Result& result) {
    Json params = Json::object();
    for (const auto& [key, value] : result.parameters) params[key] = json_parameter(value);
    Json metrics = Json::object();
    for (const Metric& metric : result.metrics)
        std::visit([&](auto value) { metrics[metric.key] = value; }, metric.value);

    Json ooms = Json::array();
    for (const Oom& oom : result.ooms)
        ooms.push_back({{"op", oom.op}, {"requested_bytes", oom.requested}, {"stream", oom.stream.value},
            {"reserved_bytes", oom.reserved}, {"allocated_bytes", oom.allocated}, {"active_bytes", oom.active},
            {"live_requested_bytes", oom.live_requested}, {"largest_free_bytes", oom.largest_free},
            {"free_bytes", oom.free_total}, {"releasable_bytes", oom.releasable},
            {"device_free_bytes", oom.device_free < 0 ? Json() : Json(oom.device_free)},
            {"external_fragmentation", oom.external_fragmentation}, {"unusable_index", oom.unusable_index},
            {"unusable_index_blocks", oom.unusable_index_blocks}, {"fragmentation_index", oom.fragmentation_index},
            {"cause", name(oom.cause)}, {"fits_if_compacted", oom.fits_if_compacted},
            {"shortfall_bytes", oom.shortfall}});
    Json recorded = Json::array();
    for (const RecordedOomAnswer& answer : result.recorded_ooms)
        recorded.push_back({{"op", answer.op}, {"requested_bytes", answer.requested}, {"served", answer.served}});
    Json findings = Json::array();
    for (const AuditFinding& finding : result.audit_findings)
        findings.push_back({{"rule", name(finding.rule)}, {"op", finding.op}, {"what", finding.what}});

    return {{"policy", {{"name", result.policy}, {"params", params}}},
        {"device", {{"kind", "host"}, {"capacity_bytes", result.capacity ? Json(*result.capacity) : Json()}}},
        {"survives", result.survives()}, {"ops_replayed", result.outcome.ops}, {"stopped", result.outcome.stopped},
        {"metrics", metrics}, {"ooms", ooms}, {"recorded_ooms", recorded}, {"audit_findings", findings},
        {"advice", result.advice}, {"run", {{"replay_seconds", result.replay_seconds}}}};
}

std::string render(const ResultSet& set, const RenderOptions&) {
    Json document = json_head("fragsim.result", set.tool_version, set.argv);
    const bool several = set.traces.size() > 1;
    if (several) {
        document["traces"] = Json::array();
        for (const TraceResults& on_trace : set.traces)
            document["traces"].push_back(json_trace(*on_trace.recording, *on_trace.trace));
    } else {
        document["trace"] = json_trace(*set.traces.front().recording, *set.traces.front().trace);
    }
    document["results"] = Json::array();
    for (std::size_t i = 0; i < set.traces.size(); ++i)
        for (const Result& result : set.traces[i].results) {
            Json json = json_result(result);
            if (several) json["trace"] = i;
            document["results"].push_back(std::move(json));
        }
    return to_text(document);
}

}  // namespace

ReportInfo json_report() { return {"json", "everything, for programs", render}; }

}  // namespace fragsim
