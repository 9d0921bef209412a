#include "lib/report/json_parts.hpp"

#include "lib/report/format.hpp"

namespace fragsim {

Json json_head(std::string_view schema, const std::string& tool_version, const std::vector<std::string>& argv,
    std::string_view version) {
    return {{"schema", {{"name", schema}, {"version", version}}},
        {"tool", {{"name", "fragsim"}, {"version", tool_version}}}, {"argv", argv}};
}

Json json_trace(const Recording& recording, const Trace& trace) {
    Json json{{"path", recording.path}, {"format", recording.format},
        {"sha256", recording.sha256.empty() ? Json() : Json(recording.sha256)}, {"ops", trace.ops},
        {"buffers", trace.buffers.size()}, {"device", trace.device}, {"streams", trace.streams.size()},
        {"completeness", name(trace.completeness)}, {"recorded_ooms", trace.ooms.size()},
        {"inferred_empty_caches", trace.inferred_empty_caches}, {"inferred_pools", trace.inferred_pools},
        {"torch_version", recording.torch_version.empty() ? Json() : Json(recording.torch_version)}};
    if (recording.settings) {
        Json settings = Json::object();
        settings["PYTORCH_CUDA_ALLOC_CONF"] = recording.settings->alloc_conf;
        for (const auto& [key, value] : recording.settings->values) settings[key] = value;
        json["allocator_settings"] = settings;
    } else {
        json["allocator_settings"] = nullptr;
    }
    json["diagnostics"] = Json::array();
    for (const Diagnostics::Entry& entry : recording.diagnostics.entries())
        json["diagnostics"].push_back({{"kind", entry.kind}, {"count", entry.count}, {"first", entry.first_position}});
    return json;
}

Json json_bytes(std::optional<Bytes> bytes) { return bytes ? Json(*bytes) : Json(); }

std::string to_text(const Json& document) {
    return document.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace fragsim
