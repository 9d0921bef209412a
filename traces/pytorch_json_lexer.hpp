// The pieces of a JSON text (RFC 8259), read straight from the input's buffer: strings, numbers, literals, one after
// another. Which piece may follow which is for the reader to say.
//
// Call stacks make up nearly all of a snapshot in JSON, and strings nearly all of a call stack: they are looked through
// eight bytes at a time and copied only to take out escapes. Nothing is kept, so a file may be of any size; the longest
// string has to fit into the input's buffer.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/trace/input.hpp"
#include "traces/pickle_value.hpp"

namespace fragsim {

// Each member that reads throws Malformed; offset() is then the place that it complains about.
class JsonLexer {
public:
    explicit JsonLexer(Input& input) : input_(input), p_(input.data()), end_(p_ + input.available()) {}

    static constexpr int kEnd = -1;
    // The next byte that is no white space, not taken; kEnd at the end.
    int peek() {
        for (;;) {
            for (; p_ < end_; ++p_)
                if (*p_ != ' ' && *p_ != '\n' && *p_ != '\t' && *p_ != '\r') return *p_;
            if (!more()) return kEnd;
        }
    }
    // After peek(): takes the byte that it gave.
    void take() { ++p_; }

    // At a quotation mark. Valid until the next call; eight more bytes may be read behind it.
    std::string_view string() {
        const unsigned char* q = p_ + 1;
        while (q < end_) {
            std::uint64_t word;
            std::memcpy(&word, q, sizeof word);
            if (const std::uint64_t found = needs_a_look(word); found != 0) {
                q += std::countr_zero(found) / 8;
                break;
            }
            q += sizeof word;
        }
        if (q >= end_ || *q != '"') [[unlikely]]
            return other_string();
        const std::string_view text(reinterpret_cast<const char*>(p_) + 1, static_cast<std::size_t>(q - p_ - 1));
        p_ = q + 1;
        return text;
    }

    // At a digit or a minus sign. Integers of any length are exact as far as Value has them.
    Value number(PickleValues& values) {
        constexpr std::ptrdiff_t kMaxDigits = 18;  // fit in 63 bits
        static_assert(kMaxDigits + 2 <= static_cast<std::ptrdiff_t>(Input::kReadAhead));
        const bool negative = *p_ == '-';
        const unsigned char* const first = p_ + negative;
        const unsigned char* q = first;
        std::uint64_t magnitude = 0;
        while (*q - unsigned{'0'} < 10u && q - first <= kMaxDigits) magnitude = 10 * magnitude + (*q++ - unsigned{'0'});
        const bool short_integer = q > first && q - first <= kMaxDigits && (*first != '0' || q - first == 1);
        if (!short_integer || q >= end_ || *q == '.' || (*q | 0x20) == 'e') [[unlikely]]
            return other_number(values);
        p_ = q;
        const auto integer = static_cast<std::int64_t>(magnitude);
        return values.integer(negative ? -integer : integer);
    }

    // Takes `word` if it comes next.
    bool literal(std::string_view word);

    // What comes next is not what had to come: `expected` says what.
    [[noreturn]] void unexpected(std::string_view expected);

    // Of the next byte, from the beginning of the uncompressed file.
    std::uint64_t offset() const { return input_.offset() + static_cast<std::uint64_t>(p_ - input_.data()); }

private:
    // Marks a quotation mark, a backslash or a control character in the eight bytes, the first of them reliably (a
    // borrow can mark bytes above it).
    static std::uint64_t needs_a_look(std::uint64_t word) {
        static_assert(std::endian::native == std::endian::little);
        constexpr std::uint64_t kOnes = 0x0101010101010101u, kTops = 0x8080808080808080u;
        const auto zero = [](std::uint64_t bytes) { return (bytes - kOnes) & ~bytes; };
        return (zero(word ^ kOnes * '"') | zero(word ^ kOnes * '\\') | ((word - kOnes * 0x20) & ~word)) & kTops;
    }

    bool more();
    std::string_view other_string();
    Value other_number(PickleValues& values);
    std::string_view unescape(std::string_view raw);
    [[noreturn]] static void truncated();

    Input& input_;
    const unsigned char* p_;
    const unsigned char* end_;  // of the bytes at hand
    std::string text_;          // the last string with escapes
};

}  // namespace fragsim
