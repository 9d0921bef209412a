#include "lib/study/sweep_axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"
#include "lib/core/limits.hpp"
#include "lib/core/sizes.hpp"
#include "lib/core/split.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kMaxValues = 1'000'000;  // of one axis
constexpr std::string_view kNames = "write POLICY.PARAMETER=VALUES, capacity=VALUES or memory_limit=VALUES";
constexpr std::string_view kForms = "write VALUE, [A,B,C], [FROM:TO], [FROM:TO:STEP] or [FROM:TO:*FACTOR]";

// A number of a range, exact: a count of 10^-decimals, or of bytes where it was written as a size.
struct Number {
    std::int64_t value = 0;
    std::size_t decimals = 0;
    bool size = false;
};

std::optional<Number> parse_number(std::string_view text) {
    std::string digits(text);
    const std::size_t point = digits.find('.');
    const std::size_t decimals = point == std::string::npos ? 0 : digits.size() - point - 1;
    if (point != std::string::npos) digits.erase(point, 1);
    Number number{0, decimals, false};
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number.value);
    const bool plain = status == std::errc() && end == digits.data() + digits.size() && digits.front() != '-';
    if (plain && decimals <= 6 && number.value < std::int64_t{1} << 40) return number;
    try {
        return Number{parse_size(text), 0, true};
    } catch (const Error&) {
        return {};
    }
}

std::string to_text(std::int64_t value, std::size_t decimals) {
    std::string digits = fmt::format("{:0{}}", value, decimals + 1);
    if (decimals == 0) return digits;
    digits.insert(digits.size() - decimals, 1, '.');
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
    return digits;
}

// "FROM:TO[:STEP]" as its values.
std::vector<std::string> values_of_range(std::string_view text) {
    const auto refuse = [&](const std::string& why) {
        return Error(ErrorCode::usage, fmt::format("range '{}' {}", text, why), std::string(kForms));
    };
    const std::vector<std::string_view> parts = split_outside_brackets(text, ':');
    const bool times = parts.size() == 3 && parts[2].starts_with('*');
    auto from = parse_number(parts[0]), to = parse_number(parts[1]), step = std::optional<Number>(Number{1, 0, false});
    if (parts.size() == 3) step = parse_number(parts[2].substr(times));
    if (parts.size() > 3 || !from || !to || !step) throw refuse("is not made of numbers or sizes");
    if (from->size != to->size || (!times && parts.size() == 3 && from->size != step->size))
        throw refuse("mixes numbers and sizes");
    if (parts.size() == 2 && (from->size || from->decimals > 0 || to->decimals > 0)) throw refuse("needs a step");
    if (times && (step->decimals > 0 || step->size || step->value < 2))
        throw refuse("needs a whole factor of 2 or more");
    if (step->value <= 0) throw refuse("needs a step above 0");
    if (times && from->value == 0) throw refuse("never leaves 0");

    const std::size_t decimals = std::max({from->decimals, to->decimals, times ? 0 : step->decimals});
    const auto scale = [&](Number& number) {
        for (; number.decimals < decimals; ++number.decimals) number.value *= 10;
    };
    scale(*from), scale(*to);
    if (!times) scale(*step);
    if (from->value > to->value) throw refuse("is empty");
    std::vector<std::string> values;
    for (std::int64_t value = from->value; value <= to->value;) {
        if (values.size() == kMaxValues) throw refuse("has more than a million values");
        values.push_back(to_text(value, decimals));
        // Both sums stay below 2^63: sizes end at 2^62.
        if (times && value > to->value / step->value) break;
        value = times ? value * step->value : value + step->value;
    }
    return values;
}

bool balanced(std::string_view text) {
    int depth = 0;
    for (const char c : text) {
        depth += (c == '[') - (c == ']');
        if (depth < 0) return false;
    }
    return depth == 0;
}

std::vector<std::string> values_of(std::string_view text) {
    if (!text.starts_with('[')) return {std::string(text)};
    std::vector<std::string> values;
    for (const std::string_view element : split_outside_brackets(text.substr(1, text.size() - 2), ',')) {
        if (element.empty())
            throw Error(ErrorCode::usage, fmt::format("'{}' has an empty value", text), std::string(kForms));
        if (split_outside_brackets(element, ':').size() == 1) {
            values.emplace_back(element);
            continue;
        }
        for (std::string& value : values_of_range(element)) values.push_back(std::move(value));
    }
    return values;
}

// `policy` with every combination of the values of `axes`.
void expand(const std::string& policy, const std::vector<const SweepAxis*>& axes, std::size_t next,
    std::vector<std::string>& out) {
    if (next == axes.size()) {
        out.push_back(policy);
        return;
    }
    const char separator = policy.find(':') == std::string::npos ? ':' : ',';
    for (const std::string& value : axes[next]->values)
        expand(fmt::format("{}{}{}={}", policy, separator, axes[next]->parameter, value), axes, next + 1, out);
}

// A policy and the axes of its name.
struct PolicyAxes {
    std::string policy;
    std::vector<const SweepAxis*> axes;
};

std::vector<PolicyAxes> policies_with_axes(const std::vector<std::string>& asked, const std::vector<SweepAxis>& axes) {
    std::vector<std::string> policies = asked;
    std::set<std::string> names, seen;
    for (const std::string& policy : asked) names.insert(policy.substr(0, policy.find(':')));
    for (const SweepAxis& axis : axes) {
        if (!seen.insert(axis.policy + "." + axis.parameter).second)
            throw Error(ErrorCode::usage, fmt::format("axis '{}' is given twice", axis.parameter), "join their values");
        if (!axis.is_limit() && names.insert(axis.policy).second) policies.push_back(axis.policy);
    }
    std::vector<PolicyAxes> all;
    for (const std::string& policy : policies) {
        PolicyAxes& one = all.emplace_back(PolicyAxes{policy, {}});
        for (const SweepAxis& axis : axes)
            if (!axis.is_limit() && axis.policy == policy.substr(0, policy.find(':'))) one.axes.push_back(&axis);
    }
    return all;
}

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
    return b != 0 && a > kUncountable / b ? kUncountable : a * b;
}

}  // namespace

SweepAxis parse_sweep_axis(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const std::string_view values = equals == std::string_view::npos ? "" : text.substr(equals + 1);
    if (values.empty() || !balanced(values) || (values.starts_with('[') && !values.ends_with(']')))
        throw Error(ErrorCode::usage, fmt::format("axis '{}' has no values", text), std::string(kForms));
    SweepAxis axis;
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos && name != "capacity" && name != "memory_limit") {
        const std::string_view near = closest(name, {"capacity", "memory_limit"});
        throw Error(ErrorCode::usage, fmt::format("axis '{}' names no policy", name),
            near.empty() ? std::string(kNames) : fmt::format("did you mean '{}'?", near));
    }
    if (dot != std::string_view::npos) axis.policy = name.substr(0, dot);
    axis.parameter = dot == std::string_view::npos ? name : name.substr(dot + 1);
    if (dot == 0 || axis.parameter.empty())
        throw Error(ErrorCode::usage, fmt::format("axis '{}' names no parameter", name),
            std::string(kNames));
    axis.values = values_of(values);
    std::set<std::string_view> seen;
    for (const std::string& value : axis.values) {
        if (!seen.insert(value).second)
            throw Error(
                ErrorCode::usage, fmt::format("axis '{}' has the value {} twice", name, value), "keep one of them");
        if (axis.is_limit()) axis.parameter == "capacity" ? parse_limits(value, "") : parse_limits("1TiB", value);
    }
    return axis;
}

std::vector<std::string> expand_policies(const std::vector<std::string>& asked, const std::vector<SweepAxis>& axes) {
    std::vector<std::string> expanded;
    for (const auto& [policy, own] : policies_with_axes(asked, axes)) expand(policy, own, 0, expanded);
    return expanded;
}

std::uint64_t count_runs(
    std::size_t traces, const std::vector<std::string>& asked, const std::vector<SweepAxis>& axes) {
    std::uint64_t policies = 0;
    for (const PolicyAxes& one : policies_with_axes(asked, axes)) {
        std::uint64_t count = 1;
        for (const SweepAxis* axis : one.axes) count = product(count, axis->values.size());
        policies = std::min(kUncountable, policies + count);
    }
    std::uint64_t runs = product(traces, std::max<std::uint64_t>(1, policies));
    for (const SweepAxis& axis : axes)
        if (axis.is_limit()) runs = product(runs, axis.values.size());
    return runs;
}

}  // namespace fragsim
