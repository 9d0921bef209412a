// One policy's run over one trace, as every JSON document has it.
#include "lib/report/json_parts.hpp"

namespace fragsim {
namespace {

// Parameters as JSON's own types where they are numbers or truth values.
Json json_parameter(const std::string& value) {
    if (value == "True" || value == "true") return true;
    if (value == "False" || value == "false") return false;
    const Json parsed = Json::parse(value, nullptr, false);
    return parsed.is_number_integer() ? parsed : Json(value);
}

Json json_summary(const LatencySummary& summary) {
    return {{"count", summary.count}, {"min_ns", summary.min}, {"p50_ns", summary.p50}, {"p90_ns", summary.p90},
        {"p99_ns", summary.p99}, {"p99_9_ns", summary.p999}, {"max_ns", summary.max}, {"total_ns", summary.total}};
}

Json json_latency(const LatencyReport& latency) {
    Json ops = Json::object(), calls = Json::object();
    for (std::size_t i = 0; i < kOpClasses; ++i)
        ops[name(static_cast<OpClass>(i))] = {
            {"policy", json_summary(latency.ops[i].own)}, {"with_driver", json_summary(latency.ops[i].all)}};
    for (const LatencyReport::Call& call : latency.calls) {
        calls[name(call.kind)] = json_summary(call.measured);
        calls[name(call.kind)]["modelled_ns"] = call.modelled_ns;
    }
    return {{"ops", ops}, {"driver_calls", calls}, {"repetition_ns", latency.repetition_ns},
        {"repetition_policy_ns", latency.repetition_own_ns}, {"driver_ns", latency.driver_ns},
        {"modelled_driver_ns", latency.modelled_driver_ns}, {"a_a_noise", latency.a_a_noise()},
        {"clock_ns", latency.clock_ns}};
}

}  // namespace

Json json_parameters(const Parameters& parameters) {
    Json params = Json::object();
    for (const auto& [key, value] : parameters) params[key] = json_parameter(value);
    return params;
}

Json json_result(const Result& result) {
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

    Json device{{"kind", result.device.kind == DeviceChoice::Kind::host ? "host" : "cuda"},
        {"capacity_bytes", json_bytes(result.limits.capacity)},
        {"memory_limit_bytes", json_bytes(result.limits.memory_limit)}};
    if (!result.card.empty()) {
        device["ordinal"] = result.device.ordinal;
        device["card"] = result.card;
        device["spoilt_words"] = result.spoilt_words;
    }
    Json agreement;
    if (result.agreement) {
        const Agreement& a = *result.agreement;
        agreement = {{"exact", a.exact()}, {"allocs", a.allocs}, {"placements_equal", a.placements_equal},
            {"events", a.events}, {"reserved_equal", a.reserved_equal},
            {"largest_reserved_difference_bytes", a.largest_reserved_difference}, {"ooms_host", a.ooms_host},
            {"ooms_device", a.ooms_device}, {"ooms_equal", a.ooms_equal}, {"first_difference", nullptr}};
        if (a.first_difference)
            agreement["first_difference"] = {{"op", a.first_difference->op}, {"host", a.first_difference->host},
                {"device", a.first_difference->device}};
    }
    Json run{{"replay_seconds", result.replay_seconds}};
    if (result.latency) run["latency"] = json_latency(*result.latency);

    Json json{{"policy", {{"name", result.policy}, {"params", json_parameters(result.parameters)}}}, {"device", device},
        {"start", name(result.start_from)}, {"survives", result.survives()}, {"num_failures", result.failures()},
        {"ops_replayed", result.outcome.ops}, {"stopped", result.outcome.stopped}, {"metrics", metrics}, {"ooms", ooms},
        {"recorded_ooms", recorded}, {"audit_findings", findings}, {"advice", result.advice}, {"run", run}};
    if (!agreement.is_null()) json["agreement"] = agreement;
    return json;
}

}  // namespace fragsim
