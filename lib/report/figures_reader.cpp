#include "lib/report/figures_reader.hpp"

#include <limits>

namespace fragsim {
namespace {

Metric read_metric(const std::string& key, const JsonReader& value) {
    const MetricInfo* info = find_metric(key);
    const bool whole =
        info ? info->unit == Unit::bytes || info->unit == Unit::count : value.value().is_number_integer();
    if (whole) return {key, value.integer()};
    return {key, value.number()};
}

}  // namespace

std::uint32_t read_op(const JsonReader& json) {
    return static_cast<std::uint32_t>(json.integer(0, std::numeric_limits<std::uint32_t>::max()));
}

int read_gpu(const JsonReader& json) { return static_cast<int>(json.integer(0, std::numeric_limits<int>::max())); }

std::vector<Metric> read_metrics(const JsonReader& json) {
    std::vector<Metric> metrics;
    for (const auto& [key, value] : json.members()) metrics.push_back(read_metric(key, value));
    return metrics;
}

std::vector<RunFigures::OomAt> read_ooms(const JsonReader& json) {
    std::vector<RunFigures::OomAt> ooms;
    for (const JsonReader& oom : json.elements())
        ooms.push_back({read_op(oom.at("op")), oom.at("requested_bytes").integer(), oom.at("cause").text()});
    return ooms;
}

std::vector<RecordedOomAnswer> read_recorded_ooms(const JsonReader& json) {
    std::vector<RecordedOomAnswer> ooms;
    for (const JsonReader& oom : json.elements())
        ooms.push_back({read_op(oom.at("op")), oom.at("requested_bytes").integer(), oom.at("served").flag()});
    return ooms;
}

bool capacity_was_memory_limit(int version, std::string_view policy) {
    const std::string_view name = policy.substr(0, policy.find(':'));
    return version == 1 && (name == "caching" || name == "split-capped" || name == "expandable");
}

}  // namespace fragsim
