#include "lib/policy/policy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"
#include "lib/core/split.hpp"

namespace fragsim {
namespace {

[[noreturn]] void refuse_unknown(const char* what, std::string_view name, const std::vector<std::string_view>& known) {
    throw Error(ErrorCode::usage, fmt::format("unknown {} '{}'", what, name), suggestion(name, known));
}

}  // namespace

std::string PolicySpec::label() const {
    std::string text(info->name);
    char separator = ':';
    for (const auto& [key, value] : given) {
        text += fmt::format("{}{}={}", separator, key, value);
        separator = ',';
    }
    return text;
}

Parameters PolicySpec::settings() const {
    Parameters all = given;
    for (const auto& value : assumed)
        if (std::none_of(given.begin(), given.end(), [&](const auto& g) { return g.first == value.first; }))
            all.push_back(value);
    return all;
}

Parameters PolicySpec::all_parameters() const {
    const Parameters values = settings();
    Parameters all;
    for (const PolicyParameter& parameter : info->parameters) {
        const auto set =
            std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == parameter.name; });
        all.emplace_back(parameter.name, set == values.end() ? std::string(parameter.default_value) : set->second);
    }
    return all;
}

std::optional<PolicySpec> PolicySpec::other_end() const {
    const auto& [key, value] = info->other_bound;
    const auto is_given = [&, &key = key](const auto& parameter) { return parameter.first == key; };
    if (key.empty() || std::any_of(given.begin(), given.end(), is_given)) return {};
    PolicySpec other = *this;
    other.given.emplace_back(key, value);
    return other;
}

void PolicySpec::assume(std::string_view name, std::string_view value) {
    const bool known = std::any_of(
        info->parameters.begin(), info->parameters.end(), [&](const PolicyParameter& p) { return p.name == name; });
    if (known && !value.empty()) assumed.emplace_back(name, value);
}

bool same_setting(const PolicySpec& a, const PolicySpec& b) {
    if (a.info->name == b.info->name) return a.all_parameters() == b.all_parameters();
    if (!a.info->torch_settings || !b.info->torch_settings) return false;
    const auto keys = [](const PolicySpec& spec) {
        const std::string conf = spec.info->torch_settings(spec.settings()).alloc_conf;
        std::vector<std::string> parts;
        for (const std::string_view part : split_outside_brackets(conf, ',')) parts.emplace_back(part);
        std::sort(parts.begin(), parts.end());
        return parts;
    };
    return keys(a) == keys(b);
}

PolicySpec parse_policy_spec(std::string_view text, const std::vector<PolicyInfo>& known) {
    const std::size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    const auto info = std::find_if(known.begin(), known.end(), [&](const PolicyInfo& p) { return p.name == name; });
    if (info == known.end()) {
        std::vector<std::string_view> names;
        for (const PolicyInfo& policy : known) names.push_back(policy.name);
        refuse_unknown("policy", name, names);
    }
    PolicySpec spec{&*info, {}, {}};
    if (colon != std::string_view::npos) {
        std::vector<std::string_view> names;
        for (const PolicyParameter& parameter : info->parameters) names.push_back(parameter.name);
        for (const std::string_view part : split_outside_brackets(text.substr(colon + 1), ',')) {
            const std::size_t equals = part.find('=');
            const std::string_view key = part.substr(0, equals);
            if (std::find(names.begin(), names.end(), key) == names.end())
                refuse_unknown(fmt::format("parameter of policy {}", name).c_str(), key, names);
            if (equals == std::string_view::npos || equals + 1 == part.size())
                throw Error(ErrorCode::usage, fmt::format("policy {}: '{}' has no value", name, key),
                    fmt::format("write {}=VALUE", key));
            const auto twice =
                std::find_if(spec.given.begin(), spec.given.end(), [&](const auto& g) { return g.first == key; });
            if (twice != spec.given.end())
                throw Error(
                    ErrorCode::usage, fmt::format("policy {}: '{}' is given twice", name, key), "keep one of them");
            spec.given.emplace_back(key, part.substr(equals + 1));
        }
    }
    for (const std::string_view key : info->required)
        if (std::none_of(spec.given.begin(), spec.given.end(), [&](const auto& g) { return g.first == key; }))
            throw Error(ErrorCode::usage, fmt::format("policy {} needs the parameter '{}'", name, key),
                fmt::format("write {}:{}=VALUE", name, key));
    return spec;
}

}  // namespace fragsim
