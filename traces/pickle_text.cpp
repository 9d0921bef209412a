#include "traces/pickle_text.hpp"

#include <charconv>

namespace fragsim {

std::optional<std::uint32_t> take_hex(std::string_view& text, std::size_t digits) {
    std::uint32_t value = 0;
    if (text.size() < digits) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + digits, value, 16);
    if (error != std::errc() || end != text.data() + digits) return std::nullopt;
    text.remove_prefix(digits);
    return value;
}

void append_utf8(std::string& out, std::uint32_t point) {
    const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (point >> shift & 0x3f)); };
    if (point < 0x80) {
        out += static_cast<char>(point);
    } else if (point < 0x800) {
        out += static_cast<char>(0xc0 | point >> 6);
        tail(0);
    } else if (point < 0x10000) {
        out += static_cast<char>(0xe0 | point >> 12);
        tail(6);
        tail(0);
    } else {
        out += static_cast<char>(0xf0 | point >> 18);
        tail(12);
        tail(6);
        tail(0);
    }
}

std::optional<Value> parse_integer(std::string_view text, PickleValues& values) {
    if (text == "00" || text == "01") return Value::of(ValueKind::boolean, text[1] - '0');
    if (text.ends_with('L')) text.remove_suffix(1);
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;

    std::uint64_t magnitude = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), magnitude).ec != std::errc())
        return values.add_wide({0, negative, true});
    if (magnitude > static_cast<std::uint64_t>(Value::kMaxPayload))
        return values.add_wide({magnitude, negative, false});
    return values.integer(negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude));
}

std::optional<double> parse_real(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::uint64_t> parse_index(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::string> unquote(std::string_view text) {
    if (text.size() < 2 || (text.front() != '\'' && text.front() != '"') || text.back() != text.front())
        return std::nullopt;
    text = text.substr(1, text.size() - 2);
    std::string out;
    while (!text.empty()) {
        const char letter = text.front();
        text.remove_prefix(1);
        if (letter != '\\') {
            out += letter;
            continue;
        }
        if (text.empty()) return std::nullopt;
        const char escaped = text.front();
        text.remove_prefix(1);
        switch (escaped) {
            case 'n': out += '\n'; break;
            case 't': out += '\t'; break;
            case 'r': out += '\r'; break;
            case '\\':
            case '\'':
            case '"': out += escaped; break;
            case 'x': {
                const std::optional<std::uint32_t> byte = take_hex(text, 2);
                if (!byte) return std::nullopt;
                out += static_cast<char>(*byte);
                break;
            }
            default: return std::nullopt;
        }
    }
    return out;
}

std::optional<std::string> unescape_unicode(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        if (text.starts_with("\\u") || text.starts_with("\\U")) {
            const std::size_t digits = text[1] == 'u' ? 4 : 8;
            text.remove_prefix(2);
            const std::optional<std::uint32_t> point = take_hex(text, digits);
            if (!point || *point > 0x10ffff) return std::nullopt;
            append_utf8(out, *point);
        } else {
            append_utf8(out, static_cast<unsigned char>(text.front()));
            text.remove_prefix(1);
        }
    }
    return out;
}

}  // namespace fragsim
