#include "lib/report/listing.hpp"

#include <algorithm>

#include "lib/metrics/catalog.hpp"
#include "lib/report/comparison/report.hpp"
#include "lib/report/json_parts.hpp"
#include "lib/report/report.hpp"

namespace fragsim {
namespace {

// Summaries are broken into lines for the terminal.
std::string in_one_line(std::string_view text) {
    std::string line(text);
    std::replace(line.begin(), line.end(), '\n', ' ');
    return line;
}

Json policies_json(std::span<const PolicyInfo> policies) {
    Json list = Json::array();
    for (const PolicyInfo& policy : policies) {
        Json parameters = Json::array();
        for (const PolicyParameter& parameter : policy.parameters) {
            const bool required =
                std::find(policy.required.begin(), policy.required.end(), parameter.name) != policy.required.end();
            parameters.push_back({{"name", parameter.name}, {"unit", parameter.unit}, {"required", required},
                {"default", required ? Json() : Json(parameter.default_value)},
                {"description", in_one_line(parameter.description)}});
        }
        list.push_back({{"name", policy.name}, {"summary", in_one_line(policy.summary)},
            {"reference", in_one_line(policy.reference)}, {"offline", policy.offline},
            {"parameters", std::move(parameters)}});
    }
    return list;
}

Json metrics_json() {
    static constexpr const char* kUnits[] = {"bytes", "count", "ratio", "ns"};
    static constexpr const char* kBetter[] = {"lower", "higher"};
    Json list = Json::array();
    for (const MetricInfo& metric : metric_catalog())
        list.push_back({{"key", metric.key}, {"unit", kUnits[static_cast<int>(metric.unit)]},
            {"better", metric.better == Better::neither ? Json() : Json(kBetter[static_cast<int>(metric.better)])},
            {"description", metric.description}});
    return list;
}

template <class Info>
Json names_json(std::span<const Info> infos) {
    Json list = Json::array();
    for (const Info& info : infos) list.push_back({{"name", info.name}, {"summary", in_one_line(info.summary)}});
    return list;
}

}  // namespace

std::string listing_json(const Listing& listing, std::string_view kind, const std::string& tool_version,
    const std::vector<std::string>& argv) {
    Json document = json_head("fragsim.list", tool_version, argv);
    const auto wanted = [&](std::string_view name) { return kind.empty() || kind == name; };
    if (wanted("policies")) document["policies"] = policies_json(listing.policies);
    if (wanted("formats")) document["formats"] = names_json(listing.formats);
    if (wanted("metrics")) document["metrics"] = metrics_json();
    if (wanted("reports")) {
        document["reports"] = names_json(reports());
        document["comparison_reports"] = names_json(comparison_reports());
    }
    return to_text(document);
}

}  // namespace fragsim
