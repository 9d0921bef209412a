// Everything, for programs: integers of bytes, ratios from 0 to 1, times in nanoseconds; what varies from run to run is
// under "run".
#include "lib/report/json_parts.hpp"
#include "lib/report/report.hpp"

namespace fragsim {
namespace {

std::string render(const ResultSet& set, const RenderOptions&) {
    Json document = json_head("fragsim.result", set.tool_version, set.argv, kLimitsVersion);
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
