#include "lib/report/explanation.hpp"
#include "lib/report/json_parts.hpp"
#include "lib/report/setting_words.hpp"

namespace fragsim {
namespace {

Json json_waste(const Waste& waste) {
    return {{"requested_bytes", waste.requested}, {"rounding_bytes", waste.rounding}, {"unsplit_bytes", waste.unsplit},
        {"pending_bytes", waste.pending}, {"pinned_free_bytes", waste.pinned},
        {"releasable_free_bytes", waste.releasable}, {"other_streams_free_bytes", waste.other_streams},
        {"other_size_class_free_bytes", waste.other_size_class}, {"private_pools_free_bytes", waste.private_pools},
        {"reserved_bytes", waste.reserved()}};
}

const char* name(Moment::Kind kind) {
    switch (kind) {
        case Moment::Kind::oom: return "oom";
        case Moment::Kind::recorded_oom: return "recorded_oom";
        case Moment::Kind::peak: return "peak";
    }
    return "";
}

Json json_moment(const Moment& moment) {
    const Oom& oom = moment.shortage.oom;
    Json json{{"kind", name(moment.kind)}, {"op", moment.op},
        {"verdict", moment.kind == Moment::Kind::peak ? Json() : Json(name(moment.verdict))},
        {"sentence", verdict_sentence(moment)}, {"requested_bytes", oom.requested}, {"stream", oom.stream.value},
        {"live_requested_bytes", oom.live_requested}, {"allocated_bytes", oom.allocated},
        {"reserved_bytes", oom.reserved}, {"free_bytes", oom.free_total},
        {"largest_free_bytes", moment.largest_ranges.empty() ? 0 : moment.largest_ranges.front()},
        {"largest_free_ranges_bytes", moment.largest_ranges},
        {"device_free_bytes", oom.device_free < 0 ? Json() : Json(oom.device_free)},
        {"recorded_device_free_bytes", moment.shortage.device_free ? Json(*moment.shortage.device_free) : Json()},
        {"waste", json_waste(moment.shortage.waste)}};
    json["at_start"] = moment.at_start;
    json["may_go_on"] = moment.workspace.has_value();
    if (moment.needs) json["needed_bytes"] = *moment.needs;
    json["pinners"] = Json::array();
    for (const Pinner& pinner : moment.pinners)
        json["pinners"].push_back({{"who", pinner.who}, {"call_site", pinner.call_site}, {"blocks", pinner.blocks},
            {"bytes", pinner.bytes}, {"free_beside_bytes", pinner.free_bytes}, {"free_ranges", pinner.ranges},
            {"oldest_op", pinner.oldest_op}, {"youngest_op", pinner.youngest_op}});
    return json;
}

Json json_setting(const SettingOutcome& outcome) {
    const auto& conf = outcome.setting.alloc_conf;
    Json json{{"label", setting_label(outcome.setting)}, {"PYTORCH_CUDA_ALLOC_CONF", conf ? Json(*conf) : Json()},
        {"in_force", outcome.in_force}, {"survives", outcome.trial.survives()},
        {"may_survive", outcome.trial.may_survive()}, {"num_ooms", outcome.trial.ooms},
        {"num_optional_ooms", outcome.trial.optional_ooms}, {"reserved_bytes.all.peak", outcome.trial.reserved_peak},
        {"num_alloc_retries", outcome.trial.retries}, {"num_driver_calls", outcome.trial.driver_calls},
        {"driver_time_ns", outcome.trial.driver_time_ns}, {"min_capacity_bytes", nullptr}, {"advice", outcome.advice}};
    if (const auto& found = outcome.min_capacity) {
        json["min_capacity_bytes"] = found->bytes;
        json["min_capacity"] = {{"is", found->memory_limit ? "memory_limit" : "capacity"},
            {"excluded_from_bytes", found->excluded_from}, {"monotone", found->monotone()},
            {"highest_failing_bytes", found->monotone() ? Json() : Json(found->highest_failing)},
            {"trials", found->trials}};
    }
    return json;
}

Json json_advice(const Explanation& explanation, const std::optional<std::size_t>& index) {
    if (!index) return nullptr;
    const Setting& setting = explanation.settings[*index].setting;
    const std::vector<OwnSetting::Line> lines = setting_lines(setting, explanation.program);
    Json json{{"label", setting_label(setting)}, {"line", lines.front().text}, {"lines", Json::array()}};
    for (const OwnSetting::Line& line : lines)
        json["lines"].push_back({{"program", line.program}, {"line", line.text}});
    return json;
}

}  // namespace

std::string explanation_json(
    const TraceResults& explained, const std::string& tool_version, const std::vector<std::string>& argv) {
    const Explanation& explanation = *explained.explanation;
    Json document = json_head("fragsim.explanation", tool_version, argv, kLimitsVersion);
    document["trace"] = json_trace(*explained.recording, *explained.trace);
    document["other_devices"] = Json::array();
    for (const Trace& other : explained.recording->traces)
        if (other.device != explained.trace->device)
            document["other_devices"].push_back({{"device", other.device}, {"num_ooms", other.ooms.size()}});
    document["capacity_bytes"] = json_bytes(explanation.limits.capacity);
    document["memory_limit_bytes"] = json_bytes(explanation.limits.memory_limit);
    document["limits_source"] = !explanation.limits.bound()         ? Json()
                                  : !explanation.inferred             ? Json("given")
                                  : explanation.inferred->retry       ? Json("recorded_retry")
                                  : explanation.inferred->full_device ? Json("recorded_full_device")
                                                                      : Json("recorded_limit");
    document["capacity_below_bytes"] =
        explanation.inferred && explanation.inferred->retry ? Json(explanation.inferred->retry->below()) : Json();
    document["num_ooms"] = explanation.failures;
    document["start_left_out"] = explanation.left_out;
    document["recorded_ooms_served"] = explanation.recorded_ooms_served;
    document["moments"] = Json::array();
    for (const Moment& moment : explanation.moments) document["moments"].push_back(json_moment(moment));
    document["course"] = Json::array();
    for (const WasteSample& sample : explanation.course) {
        Json json = json_waste(sample.waste);
        json["op"] = sample.op;
        json["start"] = sample.start;
        document["course"].push_back(std::move(json));
    }
    document["settings_start_from_live_buffers"] = explanation.starts_in_mid_run;
    document["settings"] = Json::array();
    for (const SettingOutcome& outcome : explanation.settings) document["settings"].push_back(json_setting(outcome));
    document["program_assumed"] = explanation.program.assumed;
    document["recommended"] = json_advice(explanation, explanation.recommended);
    document["extra"] = json_advice(explanation, explanation.extra);
    if (explanation.extra) document["extra"]["program_line"] = fraction_line(explanation.limits.bound());
    return to_text(document);
}

}  // namespace fragsim
