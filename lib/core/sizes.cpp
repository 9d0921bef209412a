#include "lib/core/sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "lib/core/error.hpp"

namespace fragsim {

Bytes parse_size(std::string_view text) {
    const auto refuse = [&](const char* hint) {
        return Error(ErrorCode::usage, fmt::format("'{}' is not a size", text), hint);
    };
    static constexpr const char* kForms = "write bytes (1048576) or a unit: KiB, MiB, GiB, TiB, KB, MB, GB, TB";

    double number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc() || !(number >= 0)) throw refuse(kForms);

    std::string unit(end, text.data() + text.size());
    std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
    static constexpr std::array<std::pair<std::string_view, double>, 10> kUnits{{{"", 1}, {"b", 1}, {"kib", 0x1p10},
        {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}}};
    const auto* known = std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& u) { return u.first == unit; });
    if (known == kUnits.end()) {
        const bool bare = unit.size() == 1 && std::string_view("kmgt").find(unit[0]) != std::string_view::npos;
        throw refuse(bare ? "a bare K, M, G or T is ambiguous: write GiB (2^30) or GB (10^9)" : kForms);
    }
    const double bytes = std::floor(number * known->second);
    if (bytes >= 0x1p62) throw refuse("sizes end at 4 EiB");
    return static_cast<Bytes>(bytes);
}

std::string format_size(Bytes bytes) {
    static constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    // 999.5 would print as "1000": move up as soon as three digits no longer hold the value, except to 1023 of a unit.
    while (std::abs(value) >= 1023.5 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
    if (unit == 0) return fmt::format("{} B", bytes);
    const double magnitude = std::abs(value);
    const int decimals = magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

}  // namespace fragsim
