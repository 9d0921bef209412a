// The machine keeps its cursor and stack top in locals (they live in registers) and hands them to the members only
// around calls that need them. Operands are read without looking at the end first: the input lets us read a little
// past it, and whoever finds the cursor behind the end reports a truncated file.
#include "traces/pickle.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "traces/pickle_opcodes.hpp"
#include "traces/pickle_text.hpp"

namespace fragsim {
namespace {

// More than the longest opcode with fixed operands (LONG1 of 8 bytes, 10) plus what is peeked at behind it.
constexpr std::ptrdiff_t kMargin = 24;
static_assert(kMargin <= static_cast<std::ptrdiff_t>(Input::kReadAhead));

// A snapshot nests about ten deep; whatever nests deeper than this is none.
constexpr std::size_t kMaxMarks = 1000;
constexpr std::uint32_t kMaxObjects = 1u << 28;

template <class T>
T load(const unsigned char* from) {  // little-endian, as the host is
    static_assert(std::endian::native == std::endian::little);
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

double load_big_endian_double(const unsigned char* from) {
    return std::bit_cast<double>(__builtin_bswap64(load<std::uint64_t>(from)));
}

class Machine {
public:
    Machine(Input& input, PickleValues& values, PickleSink& sink) : input_(input), values_(values), sink_(sink) {}

    Value run() {
        try {
            return execute();
        } catch (const Malformed& problem) {
            // Everything after the end reads as nonsense; the end is what is wrong then.
            if (at_ > input_.data() + input_.available()) fail_at(at_, kTruncated, kCopyAgain);
            fail_at(at_, problem.what, problem.hint);
        } catch (const std::length_error& problem) {
            fail_at(at_, problem.what(), "the file is damaged or no trace");
        }
    }

private:
    static constexpr const char* kTruncated = "the pickle ends in the middle";
    static constexpr const char* kCopyAgain = "the file is incomplete: record or copy it again";
    static constexpr const char* kDamaged = "the file is damaged or no pickle";

    Value execute();

    [[noreturn]] void fail_at(const unsigned char* at, std::string_view what, const std::string& hint) const {
        const std::uint64_t offset = input_.offset() + static_cast<std::uint64_t>(at - input_.data());
        throw Error(ErrorCode::input, fmt::format("{}: offset {}: {}", input_.name(), offset, what), hint);
    }
    [[noreturn]] static void damaged(std::string what) { throw Malformed{std::move(what), kDamaged}; }
    [[noreturn]] static void truncated() { throw Malformed{kTruncated, kCopyAgain}; }
    [[noreturn]] void refuse(const unsigned char* p, const Value* top);

    // --- the stack: values_[0 .. top), marks are heights -----------------------------------------------------------
    Value* grow_stack(Value* top) {
        const auto height = static_cast<std::size_t>(top - stack_.data());
        if (height >= kMaxObjects) damaged("more values than any snapshot has");
        stack_.resize(std::max<std::size_t>(1024, 2 * stack_.size()), Value{});
        stack_end_ = stack_.data() + stack_.size();
        return stack_.data() + height;
    }
    Value* bottom() { return stack_.data() + (marks_.empty() ? 0 : marks_.back()); }
    // The first value above the last mark, which is taken away.
    Value* pop_mark() {
        if (marks_.empty()) damaged("an opcode that needs a mark finds none");
        Value* first = stack_.data() + marks_.back();
        marks_.shrink(marks_.size() - 1);
        return first;
    }
    void need(const Value* top, std::ptrdiff_t count) {
        if (top - bottom() < count) damaged("an opcode finds too few values on the stack");
    }

    // --- the memo --------------------------------------------------------------------------------------------------
    void put(std::uint64_t index, Value value) {
        if (index < memo_.size()) {
            if (memo_[index].is(ValueKind::unset)) ++memo_used_;
            memo_[index] = value;
            return;
        }
        // An honest pickler numbers from 0, so a number is never larger than the bytes that came before it.
        if (index > input_.offset() + static_cast<std::uint64_t>(at_ - input_.data()) + 1)
            damaged(fmt::format("memo number {} is out of all proportion", index));
        memo_.resize(index, Value::of(ValueKind::unset));
        memo_.push_back(value);
        ++memo_used_;
    }
    Value get(std::uint64_t index) const {
        if (index >= memo_.size() || memo_[index].is(ValueKind::unset))
            damaged(fmt::format("memo entry {} was never set", index));
        return memo_[index];
    }

    // --- operands of variable length -------------------------------------------------------------------------------
    // `count` bytes at p, read in as far as necessary; p moves when the buffer does.
    const unsigned char* demand(const unsigned char*& p, std::uint64_t count) {
        if (p > end_) {
            at_ = p;
            truncated();
        }
        if (count > static_cast<std::uint64_t>(end_ - p)) {
            advance_to(p);
            if (input_.fill(count) < count) {
                at_ = input_.data() + input_.available() + 1;
                truncated();
            }
            p = at_ = input_.data();
            end_ = p + input_.available();
        }
        return p;
    }
    void advance_to(const unsigned char* p) {
        if (p > end_) truncated();
        input_.advance(static_cast<std::size_t>(p - input_.data()));
    }
    std::string_view demand_text(const unsigned char*& p, std::uint64_t count) {
        const unsigned char* begin = demand(p, count);
        p += count;
        return {reinterpret_cast<const char*>(begin), count};
    }
    std::string_view line(const unsigned char*& p);
    void skip(const unsigned char*& p, std::uint64_t count);
    Value long_integer(const unsigned char* from, std::uint64_t count);

    std::uint32_t new_dict() { return dicts_ < kMaxObjects ? dicts_++ : too_many(); }
    std::uint32_t new_list() { return lists_ < kMaxObjects ? lists_++ : too_many(); }
    [[noreturn]] static std::uint32_t too_many() { damaged("more lists or dicts than any snapshot has"); }

    static std::uint32_t dict_number(Value value) {
        if (!value.is(ValueKind::dict)) damaged(fmt::format("items are set on {}", describe(value)));
        return value.index();
    }
    void append(Value to, const Value* first, const Value* last) {
        const std::span<const Value> items(first, last);
        if (to.is(ValueKind::list))
            sink_.append(to.index(), items);
        else if (!to.is(ValueKind::other))
            damaged(fmt::format("items are appended to {}", describe(to)));
    }
    Value make_tuple(const Value* first, const Value* last) { return sink_.tuple({first, last}); }

    Input& input_;
    PickleValues& values_;
    PickleSink& sink_;
    const unsigned char* at_ = nullptr;   // where the current opcode's trouble would be reported
    const unsigned char* end_ = nullptr;  // of the bytes at hand
    FlatArray<Value> stack_;
    Value* stack_end_ = nullptr;
    FlatArray<std::uint32_t> marks_;
    FlatArray<Value> memo_;
    std::uint64_t memo_used_ = 0;
    std::uint32_t dicts_ = 0, lists_ = 0;
};

Value Machine::execute() {
    const unsigned char* p = at_ = end_ = input_.data();
    Value* top = grow_stack(stack_.data());
    const auto push = [&](Value value) {
        if (top == stack_end_) [[unlikely]]
            top = grow_stack(top);
        *top++ = value;
    };
    const auto push_string = [&](std::string_view text) { push(values_.string(values_.strings.intern(text))); };

    for (;;) {
        if (end_ - p < kMargin) [[unlikely]] {
            at_ = p;
            advance_to(p);
            input_.fill(static_cast<std::size_t>(kMargin));
            p = at_ = input_.data();
            end_ = p + input_.available();
            if (p == end_) {
                at_ = end_ + 1;
                truncated();
            }
        }
        const unsigned char* const opcode = p++;
        switch (static_cast<Opcode>(*opcode)) {
            // References and numbers: the bulk of a snapshot.
            case Opcode::long_binget: {
                const auto index = load<std::uint32_t>(p);
                at_ = p += 4;
                push(get(index));
                break;
            }
            case Opcode::binget: {
                const std::uint8_t index = *p++;
                at_ = p;
                push(get(index));
                break;
            }
            case Opcode::binint:
                push(Value::of(ValueKind::integer, load<std::int32_t>(p)));
                p += 4;
                break;
            case Opcode::binint1:
                push(Value::of(ValueKind::integer, *p++));
                break;
            case Opcode::binint2:
                push(Value::of(ValueKind::integer, load<std::uint16_t>(p)));
                p += 2;
                break;
            case Opcode::long1: {
                const std::uint8_t count = *p++;
                if (count - 1u < 7u) [[likely]] {  // 1 to 7 bytes: sign-extended by shifting
                    const int unused = 64 - 8 * count;
                    push(values_.integer(static_cast<std::int64_t>(load<std::uint64_t>(p) << unused) >> unused));
                } else {
                    at_ = opcode;
                    const unsigned char* digits = demand(p, count);
                    push(long_integer(digits, count));
                }
                p += count;
                break;
            }
            case Opcode::short_binunicode:
            case Opcode::short_binstring: {
                at_ = opcode;
                const std::uint8_t count = *p++;
                push_string(demand_text(p, count));
                break;
            }
            case Opcode::memoize:
                at_ = opcode;
                need(top, 1);
                if (memo_used_ == memo_.size()) [[likely]] {
                    memo_.push_back(top[-1]);
                    ++memo_used_;
                } else {
                    put(memo_used_, top[-1]);
                }
                break;
            case Opcode::binput: {
                const std::uint8_t index = *p++;
                at_ = p;
                need(top, 1);
                put(index, top[-1]);
                break;
            }
            case Opcode::long_binput: {
                const auto index = load<std::uint32_t>(p);
                at_ = p += 4;
                need(top, 1);
                put(index, top[-1]);
                break;
            }

            // Containers.
            case Opcode::empty_dict:
                at_ = opcode;
                push(Value::of(ValueKind::dict, new_dict()));
                break;
            case Opcode::empty_list:
                at_ = opcode;
                push(Value::of(ValueKind::list, new_list()));
                break;
            case Opcode::mark:
                if (marks_.size() == kMaxMarks) {
                    at_ = opcode;
                    damaged(fmt::format("nested more than {} deep", kMaxMarks));
                }
                marks_.push_back(static_cast<std::uint32_t>(top - stack_.data()));
                break;
            case Opcode::setitems: {
                at_ = opcode;
                const Value* first = pop_mark();
                const Value* last = top;
                top = const_cast<Value*>(first);
                need(top, 1);
                if ((last - first) % 2 != 0) damaged("a dict with a key that has no value");
                sink_.set_items(dict_number(top[-1]), {first, last});
                break;
            }
            case Opcode::setitem:
                at_ = opcode;
                need(top, 3);
                sink_.set_items(dict_number(top[-3]), {top - 2, top});
                top -= 2;
                break;
            case Opcode::appends:
            case Opcode::additems: {
                at_ = opcode;
                const Value* first = pop_mark();
                const Value* last = top;
                top = const_cast<Value*>(first);
                need(top, 1);
                append(top[-1], first, last);
                break;
            }
            case Opcode::append:
                at_ = opcode;
                need(top, 2);
                append(top[-2], top - 1, top);
                --top;
                break;
            case Opcode::dict: {
                at_ = opcode;
                Value* first = pop_mark();
                if ((top - first) % 2 != 0) damaged("a dict with a key that has no value");
                const std::uint32_t dict = new_dict();
                if (top != first) sink_.set_items(dict, {first, top});
                top = first;
                push(Value::of(ValueKind::dict, dict));
                break;
            }
            case Opcode::list: {
                at_ = opcode;
                Value* first = pop_mark();
                const std::uint32_t list = new_list();
                if (top != first) sink_.append(list, {first, top});
                top = first;
                push(Value::of(ValueKind::list, list));
                break;
            }
            case Opcode::tuple2:
            case Opcode::tuple1:
            case Opcode::tuple3: {
                at_ = opcode;
                const int count = *opcode - static_cast<int>(Opcode::tuple1) + 1;
                need(top, count);
                const Value made = make_tuple(top - count, top);
                top -= count;
                push(made);
                break;
            }
            case Opcode::tuple: {
                at_ = opcode;
                Value* first = pop_mark();
                const Value made = make_tuple(first, top);
                top = first;
                push(made);
                break;
            }
            case Opcode::empty_tuple:
                at_ = opcode;
                push(make_tuple(top, top));
                break;
            case Opcode::empty_set:
                push(Value::of(ValueKind::other));
                break;
            case Opcode::frozenset:
                at_ = opcode;
                top = pop_mark();
                push(Value::of(ValueKind::other));
                break;

            // Constants and rarer scalars.
            case Opcode::none:
                push(Value::of(ValueKind::none));
                break;
            case Opcode::newtrue:
                push(Value::of(ValueKind::boolean, 1));
                break;
            case Opcode::newfalse:
                push(Value::of(ValueKind::boolean, 0));
                break;
            case Opcode::binfloat:
                push(values_.real(load_big_endian_double(p)));
                p += 8;
                break;
            case Opcode::long4: {
                at_ = opcode;
                const auto count = load<std::int32_t>(p);
                p += 4;
                if (count < 0) damaged("an integer of negative length");
                const unsigned char* digits = demand(p, static_cast<std::uint64_t>(count));
                push(long_integer(digits, static_cast<std::uint64_t>(count)));
                p += count;
                break;
            }
            case Opcode::binunicode:
            case Opcode::binstring: {
                at_ = opcode;
                const auto count = load<std::uint32_t>(p);
                p += 4;
                push_string(demand_text(p, count));
                break;
            }
            case Opcode::binunicode8: {
                at_ = opcode;
                const auto count = load<std::uint64_t>(p);
                p += 8;
                push_string(demand_text(p, count));
                break;
            }
            case Opcode::short_binbytes: {
                at_ = opcode;
                const std::uint64_t count = *p++;
                skip(p, count);
                push(Value::of(ValueKind::other));
                break;
            }
            case Opcode::binbytes: {
                at_ = opcode;
                const std::uint64_t count = load<std::uint32_t>(p);
                p += 4;
                skip(p, count);
                push(Value::of(ValueKind::other));
                break;
            }
            case Opcode::binbytes8:
            case Opcode::bytearray8: {
                at_ = opcode;
                const auto count = load<std::uint64_t>(p);
                p += 8;
                skip(p, count);
                push(Value::of(ValueKind::other));
                break;
            }

            // Protocol 0.
            case Opcode::int_text:
            case Opcode::long_text: {
                at_ = opcode;
                const std::optional<Value> value = parse_integer(line(p), values_);
                if (!value) damaged("text that is no integer");
                push(*value);
                break;
            }
            case Opcode::float_text: {
                at_ = opcode;
                const std::optional<double> value = parse_real(line(p));
                if (!value) damaged("text that is no float");
                push(values_.real(*value));
                break;
            }
            case Opcode::string_text: {
                at_ = opcode;
                const std::optional<std::string> text = unquote(line(p));
                if (!text) damaged("text that is no quoted string");
                push(values_.string(values_.strings.intern_exact(*text)));
                break;
            }
            case Opcode::unicode_text: {
                at_ = opcode;
                const std::optional<std::string> text = unescape_unicode(line(p));
                if (!text) damaged("text that is no escaped string");
                push(values_.string(values_.strings.intern_exact(*text)));
                break;
            }
            case Opcode::put_text: {
                at_ = opcode;
                need(top, 1);
                const std::optional<std::uint64_t> index = parse_index(line(p));
                if (!index) damaged("text that is no memo number");
                put(*index, top[-1]);
                break;
            }
            case Opcode::get_text: {
                at_ = opcode;
                const std::optional<std::uint64_t> index = parse_index(line(p));
                if (!index) damaged("text that is no memo number");
                push(get(*index));
                break;
            }

            // The machine itself.
            case Opcode::proto:
                at_ = ++p;
                if (p[-1] > 5) throw Malformed{fmt::format("pickle protocol {}", p[-1]), "protocols 0 to 5 are read"};
                break;
            case Opcode::frame:  // a hint for readers that fetch ahead
                p += 8;
                break;
            case Opcode::pop:
                at_ = opcode;
                if (top == bottom() && !marks_.empty()) {
                    pop_mark();
                } else {
                    need(top, 1);
                    --top;
                }
                break;
            case Opcode::pop_mark:
                at_ = opcode;
                top = pop_mark();
                break;
            case Opcode::dup:
                at_ = opcode;
                need(top, 1);
                push(top[-1]);
                break;
            case Opcode::stop:
                at_ = opcode;
                need(top, 1);
                if (p > end_) {
                    at_ = p;
                    truncated();
                }
                advance_to(p);
                return top[-1];
            default:
                at_ = opcode;
                refuse(opcode, top);
        }
    }
}

void Machine::refuse(const unsigned char* opcode, const Value* top) {
    const char* name = refused_name(*opcode);
    if (name == nullptr) damaged(fmt::format("unknown opcode 0x{:02x}", *opcode));

    std::string subject;
    const unsigned char* p = opcode + 1;
    switch (static_cast<Opcode>(*opcode)) {
        case Opcode::global:
        case Opcode::inst: {
            const std::string module(line(p));
            subject = fmt::format(" ({}.{})", module, line(p));
            break;
        }
        case Opcode::stack_global:
            if (top - bottom() >= 2 && top[-1].is(ValueKind::string) && top[-2].is(ValueKind::string))
                subject = fmt::format(" ({}.{})", values_.strings.text(top[-2].index()), values_.strings.text(top[-1].index()));
            break;
        default: break;
    }
    constexpr std::size_t kMaxSubject = 120;
    if (subject.size() > kMaxSubject) subject = subject.substr(0, kMaxSubject) + "...)";
    for (char& letter : subject)
        if (static_cast<unsigned char>(letter) < ' ') letter = '?';
    throw Malformed{fmt::format("opcode {}{} would run code", name, subject),
                    "only plain data is read, as torch.cuda.memory._dump_snapshot writes it"};
}

// Up to the next newline, which is passed over.
std::string_view Machine::line(const unsigned char*& p) {
    std::size_t known = 0;
    for (;;) {
        const auto at_hand = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, end_ - p));
        const void* newline = at_hand > known ? std::memchr(p + known, '\n', at_hand - known) : nullptr;
        if (newline != nullptr) {
            const auto* begin = reinterpret_cast<const char*>(p);
            p = static_cast<const unsigned char*>(newline) + 1;
            return {begin, static_cast<std::size_t>(static_cast<const char*>(newline) - begin)};
        }
        known = at_hand;
        demand(p, at_hand + 1);
    }
}

void Machine::skip(const unsigned char*& p, std::uint64_t count) {
    constexpr std::uint64_t kStep = 64 * 1024;
    while (count > 0) {
        const std::uint64_t step = std::min(count, kStep);
        demand(p, step);
        p += step;
        count -= step;
    }
}

// Two's complement, least byte first.
Value Machine::long_integer(const unsigned char* from, std::uint64_t count) {
    const bool negative = count > 0 && (from[count - 1] & 0x80) != 0;
    const unsigned char filler = negative ? 0xff : 0x00;
    while (count > 0 && from[count - 1] == filler) --count;  // bytes that only repeat the sign
    if (count > 8) return values_.add_wide({0, negative, true});

    std::uint64_t bits = negative ? ~std::uint64_t{0} : 0;
    std::memcpy(&bits, from, count);
    if (!negative && bits > static_cast<std::uint64_t>(Value::kMaxPayload)) return values_.add_wide({bits, false, false});
    if (negative && bits < (std::uint64_t{1} << 63)) return values_.add_wide({0, true, true});
    return values_.integer(static_cast<std::int64_t>(bits));
}

}  // namespace

Value read_pickle(Input& input, PickleValues& values, PickleSink& sink) { return Machine(input, values, sink).run(); }

}  // namespace fragsim
