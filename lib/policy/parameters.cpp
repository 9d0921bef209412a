#include "lib/policy/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"
#include "lib/core/sizes.hpp"

namespace fragsim {

const PolicyParameter& ParameterReader::parameter(std::string_view name) const {
    const auto found = std::find_if(known_.begin(), known_.end(), [&](const auto& p) { return p.name == name; });
    FRAGSIM_ASSERT(found != known_.end());
    return *found;
}

std::string_view ParameterReader::value(std::string_view name) const {
    const auto given = std::find_if(given_.begin(), given_.end(), [&](const auto& g) { return g.first == name; });
    return given == given_.end() ? parameter(name).default_value : std::string_view(given->second);
}

void ParameterReader::refuse(std::string_view name, std::string_view expected) const {
    throw Error(ErrorCode::usage, fmt::format("policy {}: {}={} is not {}", policy_, name, value(name), expected),
        std::string(parameter(name).description));
}

Bytes ParameterReader::bytes(std::string_view name) const {
    try {
        return parse_size(value(name));
    } catch (const Error& error) {
        throw Error(ErrorCode::usage, fmt::format("policy {}: {}: {}", policy_, name, error.what()), error.hint());
    }
}

Bytes ParameterReader::bytes_or_max(std::string_view name) const {
    const std::string_view text = value(name);
    std::uint64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool plain = fault == std::errc() && end == text.data() + text.size();
    if (text == "max" || (plain && number > std::uint64_t{1} << 62)) return std::numeric_limits<Bytes>::max();
    return bytes(name);
}

std::int64_t ParameterReader::count(std::string_view name, std::int64_t least, std::int64_t most) const {
    const std::string_view text = value(name);
    std::int64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc() || end != text.data() + text.size() || number < least || number > most)
        refuse(name, fmt::format("a number from {} to {}", least, most));
    return number;
}

double ParameterReader::ratio(std::string_view name, double least, double most) const {
    const std::string_view text = value(name);
    double number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc() || end != text.data() + text.size() || !(number >= least && number <= most))
        refuse(name, fmt::format("a number from {} to {}", least, most));
    return number;
}

bool ParameterReader::flag(std::string_view name) const {
    const std::string_view text = value(name);
    if (text == "true" || text == "True" || text == "1") return true;
    if (text == "false" || text == "False" || text == "0") return false;
    refuse(name, "true or false");
}

int ParameterReader::choice_index(std::string_view name) const {
    std::string_view rest = parameter(name).unit;
    std::vector<std::string_view> choices;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('|'), rest.size());
        choices.push_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    const auto found = std::find(choices.begin(), choices.end(), value(name));
    if (found == choices.end())
        throw Error(ErrorCode::usage, fmt::format("policy {}: unknown {} '{}'", policy_, name, value(name)),
            suggestion(value(name), choices));
    return static_cast<int>(found - choices.begin());
}

Bytes ParameterReader::power_of_two(std::string_view name, Bytes least) const {
    const Bytes size = bytes(name);
    if (size < least || !std::has_single_bit(static_cast<std::uint64_t>(size)))
        refuse(name, fmt::format("a power of two of at least {} bytes", least));
    return size;
}

}  // namespace fragsim
