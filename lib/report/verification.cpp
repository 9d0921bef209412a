#include "lib/report/verification.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.hpp"
#include "lib/report/format.hpp"
#include "lib/report/json_parts.hpp"

namespace fragsim {
namespace {

// The events around a divergence, the way the text form writes them.
std::string around(const Trace& trace, std::uint32_t event) {
    static constexpr const char* kNames[] = {"alloc", "free", "free_requested", "free_completed", "record_stream",
        "empty_cache", "release_pool", "empty_pool", "synchronize", "marker", "oom"};
    std::string out;
    const std::uint32_t first = event < 2 ? 0 : event - 2;
    for (std::uint32_t i = first; i < first + 5 && i < trace.events.size(); ++i) {
        const Event e = trace.events[i];
        out += fmt::format("    {} event {}: {}", i == event ? ">" : " ", i, kNames[static_cast<int>(e.kind())]);
        if (is_op(e.kind()) || e.kind() == EventKind::free_requested)
            out += fmt::format(" buffer {}, {} bytes", e.subject, trace.buffers[e.subject].requested);
        out += '\n';
    }
    return out;
}

// Not every trace of a recording is verified, so a result names its own by the device.
const Trace& trace_of(const Verification& verification, const VerifyResult& result) {
    const auto& traces = verification.recording->traces;
    const auto found =
        std::find_if(traces.begin(), traces.end(), [&](const Trace& t) { return t.device == result.device; });
    FRAGSIM_ASSERT(found != traces.end());
    return *found;
}

}  // namespace

std::string verification_text(const Verification& verification) {
    std::string out;
    for (const VerifyResult& result : verification.results) {
        const Trace& trace = trace_of(verification, result);
        out += fmt::format("{}, device {}: {} under {}; {} of {} allocations and {} of {} driver calls as recorded",
            verification.recording->path, result.device, result.exact() ? "exact" : "not exact", verification.policy,
            format_count(result.allocs_exact), format_count(result.allocs), format_count(result.segment_events_exact),
            format_count(result.segment_events));
        if (trace.inferred_pools) out += "; memory pools partly inferred";
        if (result.ooms > 0) out += fmt::format(", {} of {} out of memory", result.ooms_exact, result.ooms);
        out += '\n';
        if (const auto& divergence = result.first_divergence) {
            out += fmt::format("  first divergence at event {}\n    expected {}\n    actual   {}\n", divergence->event,
                divergence->expected, divergence->actual);
            out += around(trace, divergence->event);
        }
    }
    return out;
}

std::string verification_json(
    const std::vector<Verification>& all, const std::string& tool_version, const std::vector<std::string>& argv) {
    Json document = json_head("fragsim.verification", tool_version, argv);
    document["results"] = Json::array();
    for (const Verification& verification : all)
        for (const VerifyResult& result : verification.results) {
            Json json{{"path", verification.recording->path}, {"policy", verification.policy},
                {"device", result.device}, {"completeness", name(result.completeness)}, {"exact", result.exact()},
                {"allocs", result.allocs}, {"allocs_exact", result.allocs_exact},
                {"segment_events", result.segment_events}, {"segment_events_exact", result.segment_events_exact},
                {"ooms", result.ooms}, {"ooms_exact", result.ooms_exact},
                {"end_exact", result.end_exact ? Json(*result.end_exact) : Json()}};
            json["inferred_pools"] = trace_of(verification, result).inferred_pools;
            json["first_divergence"] = nullptr;
            if (const auto& divergence = result.first_divergence)
                json["first_divergence"] = {
                    {"event", divergence->event}, {"expected", divergence->expected}, {"actual", divergence->actual}};
            document["results"].push_back(std::move(json));
        }
    return to_text(document);
}

}  // namespace fragsim
