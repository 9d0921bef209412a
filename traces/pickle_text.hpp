// The text operands of pickle protocol 0: numbers and strings as Python's repr writes them. Nothing when malformed.
// JSON shares what the two have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/pickle_value.hpp"

namespace fragsim {

std::optional<Value> parse_integer(
    std::string_view text, PickleValues& values);  // "12", "-3", "12L"; "01", "00" are booleans
std::optional<double> parse_real(std::string_view text);
std::optional<std::uint64_t> parse_index(std::string_view text);
std::optional<std::string> unquote(std::string_view text);           // 'it\'s' or "it's", with backslash escapes
std::optional<std::string> unescape_unicode(std::string_view text);  // \u20ac, \U0001f600; everything else is Latin-1

// Exactly `digits` hexadecimal digits at the front, which are taken away.
std::optional<std::uint32_t> take_hex(std::string_view& text, std::size_t digits);
void append_utf8(std::string& out, std::uint32_t point);

}  // namespace fragsim
