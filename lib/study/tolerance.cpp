#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"
#include "lib/core/sizes.hpp"
#include "lib/study/comparison.hpp"

namespace fragsim {
namespace {

// The whole of `text` as a number >= 0.
std::optional<double> number(std::string_view text) {
    double value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0) return {};
    return value;
}

}  // namespace

double Tolerance::allowance(double baseline) const { return relative ? amount * std::abs(baseline) : amount; }

Tolerance parse_tolerance(const MetricInfo& metric, std::string_view text) {
    if (text.ends_with('%'))
        if (const auto percent = number(text.substr(0, text.size() - 1))) return {*percent / 100, true};
    if (const auto amount = number(text)) return {*amount, false};
    if (metric.unit == Unit::bytes && !text.ends_with('%')) return {static_cast<double>(parse_size(text)), false};
    throw Error(ErrorCode::usage, fmt::format("tolerance of {}: '{}' is none", metric.key, text),
        fmt::format("write a part of the baseline (1%) or an amount ({})", metric.unit == Unit::bytes   ? "2MiB"
                                                                           : metric.unit == Unit::ratio ? "0.01"
                                                                                                        : "3"));
}

void check_tolerance(const std::string& key, std::string_view text) {
    if (const MetricInfo* info = find_metric(key)) {
        parse_tolerance(*info, text);
        return;
    }
    std::vector<std::string_view> known;
    for (const MetricInfo& metric : metric_catalog()) known.push_back(metric.key);
    const std::string_view near = closest(key, known);
    throw Error(ErrorCode::usage, fmt::format("unknown metric '{}'", key),
        near.empty() ? "fragsim list metrics" : fmt::format("did you mean '{}'?", near));
}

void set_tolerance(Tolerances& tolerances, const std::string& key, const std::string& text) {
    const auto there =
        std::find_if(tolerances.begin(), tolerances.end(), [&](const auto& t) { return t.first == key; });
    if (there == tolerances.end())
        tolerances.emplace_back(key, text);
    else
        there->second = text;
}

}  // namespace fragsim
