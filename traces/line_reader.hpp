// Text formats line by line: LF or CRLF, the last line with or without an end.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "lib/core/types.hpp"
#include "lib/trace/input.hpp"

namespace fragsim {

class LineReader {
public:
    explicit LineReader(Input& input) : input_(input) {}

    // False at the end. `line` is without its end and valid until the next call.
    bool next(std::string_view& line) {
        input_.advance(consumed_);
        consumed_ = 0;
        std::size_t known = 0;
        for (;;) {
            const std::size_t available = input_.fill(known + 1);
            const unsigned char* begin = input_.data();
            const void* newline = std::memchr(begin + known, '\n', available - known);
            if (newline != nullptr) {
                take(line, static_cast<std::size_t>(static_cast<const unsigned char*>(newline) - begin), 1);
                return true;
            }
            if (available == known) {  // nothing more comes
                if (available == 0) return false;
                take(line, available, 0);
                return true;
            }
            known = available;
        }
    }

    std::int64_t number() const { return number_; }  // of the last line, from 1
    std::string position() const { return fmt::format("line {}", number_); }

    // Error(input) at the last line.
    [[noreturn]] void fail(std::string_view what, std::string_view hint) const {
        throw Error(ErrorCode::input, fmt::format("{}:{}: {}", input_.name(), number_, what), std::string(hint));
    }

private:
    void take(std::string_view& line, std::size_t length, std::size_t end) {
        line = {reinterpret_cast<const char*>(input_.data()), length};
        if (line.ends_with('\r')) line.remove_suffix(1);
        consumed_ = length + end;
        ++number_;
    }

    Input& input_;
    std::size_t consumed_ = 0;
    std::int64_t number_ = 0;
};

// All of `text` as a number, decimal or with 0x in hexadecimal.
template <class Integer>
std::optional<Integer> parse_number(std::string_view text) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    if (hex) text.remove_prefix(2);
    Integer value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

inline std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t";
    const std::size_t first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

inline constexpr Bytes kMaxTextBytes = Bytes{1} << 62;  // of one allocation; beyond it sums overflow

}  // namespace fragsim
