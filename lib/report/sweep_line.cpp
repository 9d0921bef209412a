#include "lib/report/sweep_line.hpp"

#include "lib/report/json_parts.hpp"

namespace fragsim {
namespace {

Json json_options(const RunOptions& options) {
    return {{"on_oom", options.on_oom == OnOom::stop ? "stop" : "skip"},
        {"frees", options.frees == Frees::completed ? "completed" : "requested"}};
}

std::string key_of(const Json& version, const Json& sha256, const Json& device, const Json& policy, const Json& params,
    const Json& capacity, const Json& memory_limit, const Json& options) {
    return Json{version, sha256, device, policy, params, capacity, memory_limit, options}.dump();
}

std::string one_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string sweep_key(const SweepRun& run, const std::string& tool_version) {
    return key_of(tool_version, run.recording->sha256, run.trace->device, run.policy.info->name,
        json_parameters(run.policy.all_parameters()), json_bytes(run.options.limits.capacity),
        json_bytes(run.options.limits.memory_limit),
        json_options(run.options));
}

std::string sweep_line(const SweepRun& run, const Result& result, const std::string& tool_version) {
    Json line{{"schema", {{"name", "fragsim.sweep"}, {"version", kLimitsVersion}}},
        {"tool", {{"name", "fragsim"}, {"version", tool_version}}},
        {"trace", {{"path", run.recording->path}, {"sha256", run.recording->sha256}, {"device", run.trace->device},
                      {"ops", run.trace->ops}}},
        {"options", json_options(run.options)}};
    Json outcome = json_result(result);
    outcome.erase("run");
    line.update(outcome);
    return one_line(line);
}

std::optional<SweepLine> read_sweep_line(std::string_view line) try {
    if (!line.starts_with(kSweepLineBegin)) return {};
    const Json json = Json::parse(line);
    const Json& policy = json.at("policy");
    const std::string version = json.at("tool").at("version");
    return SweepLine{key_of(version, json.at("trace").at("sha256"), json.at("trace").at("device"), policy.at("name"),
                         policy.at("params"), json.at("device").at("capacity_bytes"),
                         json.at("device").at("memory_limit_bytes"), json.at("options")),
        version, json.at("survives").get<bool>()};
} catch (const Json::exception&) {
    return {};
}

}  // namespace fragsim
