#include "lib/report/format.hpp"

#include <fmt/format.h>

#include <cmath>

#include "lib/core/sizes.hpp"

namespace fragsim {

std::string format_ratio(double ratio) { return fmt::format("{:.1f} %", 100 * ratio); }

std::string format_change(double candidate, double baseline) {
    if (candidate == baseline) return "=";
    if (baseline == 0) return "new";
    return fmt::format("{:+.1f} %", 100 * (candidate - baseline) / baseline);
}

std::string format_duration(double nanoseconds) {
    static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
    double value = nanoseconds;
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < std::size(kUnits)) value /= 1000, ++unit;
    if (value == 0) return "0 s";
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string whole_mib(Bytes bytes) { return format_count((bytes + kMiB - 1) / kMiB) + " MiB"; }

std::string format_count(std::int64_t count) {
    std::string digits = fmt::format("{}", count);
    for (auto at = static_cast<std::int64_t>(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3)
        digits.insert(static_cast<std::size_t>(at), 1, ',');
    return digits;
}

std::string format_mib(Bytes bytes) {
    const std::int64_t tenths = std::llround(static_cast<double>(bytes) * 10 / kMiB);
    return fmt::format("{}.{} MiB", format_count(tenths / 10), std::abs(tenths % 10));
}

std::string format_metric(const Metric& metric) {
    const MetricInfo* info = find_metric(metric.key);
    const double value = std::visit([](auto v) { return static_cast<double>(v); }, metric.value);
    switch (info->unit) {
        case Unit::bytes: return format_size(std::llround(value));
        case Unit::count: return format_count(std::llround(value));
        case Unit::ratio: return fmt::format("{:.4f}", value);
        case Unit::nanoseconds: return format_duration(value);
    }
    return {};
}

std::string_view name(Completeness completeness) {
    switch (completeness) {
        case Completeness::complete: return "complete";
        case Completeness::mid_run: return "mid-run";
        case Completeness::ring_overflowed: return "ring-overflowed";
        case Completeness::no_events: return "no-events";
    }
    return "";
}

std::string describe(Completeness completeness) {
    switch (completeness) {
        case Completeness::complete: return "complete, from an empty allocator on";
        case Completeness::mid_run: return "begins in mid-run, the state at its start is rebuilt";
        case Completeness::ring_overflowed:
            return "the oldest entries were overwritten, the state at its start is rebuilt";
        case Completeness::no_events: return "a picture of the memory without a history";
    }
    return "";
}

}  // namespace fragsim
