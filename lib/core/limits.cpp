#include "lib/core/limits.hpp"

#include <fmt/format.h>

#include <charconv>

#include "lib/core/error.hpp"
#include "lib/core/sizes.hpp"

namespace fragsim {
namespace {

// "80%" or "0.8". None: not written as a share.
std::optional<double> parse_share(std::string_view text) {
    double number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc()) return {};
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    if (unit == "%") number /= 100;
    if (unit != "%" && (!unit.empty() || number > 1)) return {};
    if (!(number > 0 && number <= 1))
        throw Error(ErrorCode::usage, fmt::format("'{}' is not a share of the capacity", text),
            "write more than 0 and at most 100%, such as 80% or 0.8");
    return number;
}

// As parse_size, but a bare number below 1 MiB is refused: whoever writes 24 means GiB. "24KiB" says what it means.
Bytes parse_capacity(std::string_view text) {
    const Bytes bytes = parse_size(text);
    const bool bare = text.find_first_not_of("0123456789.") == std::string_view::npos;
    if (bare && bytes < kMiB)
        throw Error(ErrorCode::usage, fmt::format("'{}' is {} bytes, less than any run can use", text, bytes),
            fmt::format("{}GiB? A number without a unit is in bytes, from {} on", text, kMiB));
    return bytes;
}

}  // namespace

Limits parse_limits(std::string_view capacity, std::string_view memory_limit) {
    const auto none = [](std::string_view text) { return text.empty() || text == "none"; };
    Limits limits;
    if (!none(capacity)) limits.capacity = parse_capacity(capacity);
    if (none(memory_limit)) return limits;
    const std::optional<double> share = parse_share(memory_limit);
    if (!share) {
        limits.memory_limit = parse_capacity(memory_limit);
        return limits;
    }
    if (!limits.capacity)
        throw Error(ErrorCode::usage, fmt::format("memory limit '{}' is a share of an unknown capacity", memory_limit),
            "add --capacity SIZE, or write the limit as a size");
    if (*share < 1) limits.memory_limit = static_cast<Bytes>(*share * static_cast<double>(*limits.capacity));
    return limits;
}

std::string describe(const Limits& limits) {
    if (!limits.bound()) return "no capacity limit";
    std::string text;
    if (limits.capacity) text = "capacity " + format_size(*limits.capacity);
    if (limits.memory_limit) text += (text.empty() ? "" : ", ") + ("memory limit " + format_size(*limits.memory_limit));
    return text;
}

}  // namespace fragsim
