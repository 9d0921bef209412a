#include "traces/pytorch_json_lexer.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "traces/pickle.hpp"
#include "traces/pickle_text.hpp"

namespace fragsim {
namespace {

constexpr const char* kDamaged = "the file is damaged or no JSON";

enum class NumberForm { none, integer, real };

NumberForm form_of(std::string_view text) {
    const auto take = [&](std::string_view letters) {
        const bool found = !text.empty() && letters.find(text.front()) != std::string_view::npos;
        text.remove_prefix(found);
        return found;
    };
    const auto take_digits = [&] {
        bool any = false;
        while (take("0123456789")) any = true;
        return any;
    };
    take("-");
    if (!take("0") && !take_digits()) return NumberForm::none;
    if (text.empty()) return NumberForm::integer;
    if (take(".") && !take_digits()) return NumberForm::none;
    if (take("eE") && (take("+-"), !take_digits())) return NumberForm::none;
    return text.empty() ? NumberForm::real : NumberForm::none;
}

}  // namespace

// More bytes at hand than before; false at the end of the file. What is unread may move.
bool JsonLexer::more() {
    input_.advance(static_cast<std::size_t>(p_ - input_.data()));
    const std::size_t before = input_.available();
    input_.fill(before + 1);
    p_ = input_.data();
    end_ = p_ + input_.available();
    return input_.available() > before;
}

bool JsonLexer::literal(std::string_view word) {
    while (static_cast<std::size_t>(end_ - p_) < word.size() && more()) {}
    const std::string_view next(reinterpret_cast<const char*>(p_), static_cast<std::size_t>(end_ - p_));
    if (!next.starts_with(word)) {
        if (!next.empty() && word.starts_with(next)) {
            p_ = end_;
            truncated();
        }
        return false;
    }
    p_ += word.size();
    return true;
}

// A string with escapes, or one that reaches beyond the bytes at hand.
std::string_view JsonLexer::other_string() {
    bool escapes = false;
    std::ptrdiff_t length = 1;
    for (;; ++length) {
        while (length >= end_ - p_)
            if (!more()) {
                p_ = end_;
                truncated();
            }
        const unsigned char letter = p_[length];
        if (letter == '"') break;
        if (letter < ' ') {
            p_ += length;
            throw Malformed{fmt::format("control character 0x{:02x} in a string", letter), kDamaged};
        }
        if (letter == '\\') {
            escapes = true;
            ++length;
        }
    }
    const std::string_view raw(reinterpret_cast<const char*>(p_) + 1, static_cast<std::size_t>(length) - 1);
    const std::string_view text = escapes ? unescape(raw) : raw;
    p_ += length + 1;
    return text;
}

std::string_view JsonLexer::unescape(std::string_view raw) {
    const auto is_low = [](std::uint32_t unit) { return unit >= 0xdc00 && unit <= 0xdfff; };
    const auto unit = [&] {
        const std::optional<std::uint32_t> digits = take_hex(raw, 4);
        if (!digits) throw Malformed{"\\u without four hexadecimal digits in a string", kDamaged};
        return *digits;
    };
    text_.clear();
    while (!raw.empty()) {
        const std::size_t plain = std::min(raw.find('\\'), raw.size());
        text_ += raw.substr(0, plain);
        raw.remove_prefix(plain);
        if (raw.empty()) break;
        const char escape = raw[1];
        raw.remove_prefix(2);
        switch (escape) {
            case '"':
            case '\\':
            case '/': text_ += escape; break;
            case 'b': text_ += '\b'; break;
            case 'f': text_ += '\f'; break;
            case 'n': text_ += '\n'; break;
            case 'r': text_ += '\r'; break;
            case 't': text_ += '\t'; break;
            case 'u': {
                std::uint32_t point = unit();
                if (point >= 0xd800 && point <= 0xdbff && raw.starts_with("\\u")) {
                    std::string_view ahead = raw.substr(2);
                    if (const auto low = take_hex(ahead, 4); low && is_low(*low)) {
                        point = 0x10000 + ((point - 0xd800) << 10) + (*low - 0xdc00);
                        raw = ahead;
                    }
                }
                // Half a pair: Python writes one for each byte of a file name that is not UTF-8.
                constexpr std::uint32_t kReplacement = 0xfffd;
                append_utf8(text_, point >= 0xd800 && point <= 0xdfff ? kReplacement : point);
                break;
            }
            default:
                throw Malformed{
                    fmt::format("unknown escape '\\{}' in a string", escape >= ' ' && escape <= '~' ? escape : '?'),
                    kDamaged};
        }
    }
    const std::size_t size = text_.size();
    text_.append(8, '\0');
    return {text_.data(), size};
}

// A float, an integer of more than 18 digits, or a number that reaches beyond the bytes at hand.
Value JsonLexer::other_number(PickleValues& values) {
    std::ptrdiff_t length = 0;
    const auto at_end = [&] { return length == end_ - p_ && !more(); };
    while (
        !at_end() && std::string_view("0123456789+-.eE").find(static_cast<char>(p_[length])) != std::string_view::npos)
        ++length;
    const std::string_view text(reinterpret_cast<const char*>(p_), static_cast<std::size_t>(length));
    const NumberForm form = form_of(text);
    Value value;
    if (form == NumberForm::none) {
        if (length == end_ - p_) {
            p_ = end_;
            truncated();
        }
        unexpected("a value");
    } else if (form == NumberForm::integer) {
        value = *parse_integer(text, values);
    } else {
        constexpr std::size_t kMaxShown = 40;
        const std::optional<double> real = parse_real(text);
        if (!real)
            throw Malformed{fmt::format("the number {}{} is out of range", text.substr(0, kMaxShown),
                                text.size() > kMaxShown ? "..." : ""),
                kDamaged};
        value = values.real(*real);
    }
    p_ += length;
    return value;
}

void JsonLexer::truncated() {
    throw Malformed{"the JSON ends in the middle", "the file is incomplete: record or copy it again"};
}

void JsonLexer::unexpected(std::string_view expected) {
    const int next = peek();
    if (next == kEnd) truncated();
    const std::uint64_t here = offset();
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
        if (literal(word)) {
            p_ -= offset() - here;
            throw Malformed{fmt::format("{} is no number of JSON", word),
                "json.dump of Python writes it; correct the value before"};
        }
    const std::string shown =
        next > ' ' && next <= '~' ? fmt::format("'{}'", static_cast<char>(next)) : fmt::format("byte 0x{:02x}", next);
    throw Malformed{fmt::format("{} where {} was expected", shown, expected), kDamaged};
}

}  // namespace fragsim
