// The machine keeps its cursor and stack top in locals (they live in registers) and hands them to the members only
// around calls that need them. Operands are read without looking at the end first: the input lets us read a little
// past it, and whoever finds the cursor behind the end reports a truncated file.
#include "traces/pickle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "traces/pickle_memo.hpp"
#include "traces/pickle_opcodes.hpp"
#include "traces/pickle_text.hpp"

namespace fragsim {
namespace {

#define FRAGSIM_INLINE [[gnu::always_inline]]
#define FRAGSIM_COLD [[gnu::cold, gnu::noinline]]
#define FRAGSIM_HOT [[gnu::hot, gnu::noinline]]  // or the ways out by exception make the compiler take it for cold

// More than the longest opcode with fixed operands (LONG1 of 8 bytes, 10) plus what is peeked at behind it.
constexpr std::ptrdiff_t kMargin = 24;
static_assert(kMargin <= static_cast<std::ptrdiff_t>(Input::kReadAhead));

// A snapshot nests about ten deep; whatever nests deeper than this is none.
constexpr std::size_t kMaxMarks = 1000;
constexpr std::uint32_t kMaxObjects = 1u << 28;
constexpr std::uint64_t kMaxOperand = std::uint64_t{1} << 62;  // larger lengths are for the input to refuse

template <class T>
T load(const unsigned char* from) {  // little-endian, as the host is
    static_assert(std::endian::native == std::endian::little);
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// Of the lowest `count` bytes, 1 to 8.
std::int64_t sign_extend(std::uint64_t bits, unsigned count) {
    const unsigned unused = 64 - 8 * count;
    return static_cast<std::int64_t>(bits << unused) >> unused;
}

double load_big_endian_double(const unsigned char* from) {
    return std::bit_cast<double>(__builtin_bswap64(load<std::uint64_t>(from)));
}

struct Cursor {
    const unsigned char* p;
    Value* top;
};

// The keys of the last dict literal, as the bytes that refer to them. Records of one kind follow one another, so the
// next dict most likely begins with the same bytes: then its keys need not be looked up.
struct DictShape {
    static constexpr std::size_t kMaxKeys = 16;
    struct Key {
        std::uint64_t bytes = ~std::uint64_t{0}, mask = 0;  // of the opcode with its operand
        std::ptrdiff_t length = 0;
        Value key;
    };
    std::array<Key, kMaxKeys> keys;
    std::uint64_t memo_replaced = 0;  // PickleMemo::replaced() when the keys were looked up
};

class Machine {
public:
    Machine(Input& input, PickleValues& values, PickleSink& sink) : input_(input), values_(values), sink_(sink) {}

    Value run() {
        try {
            return execute();
        } catch (const Malformed& problem) {
            // Everything after the end reads as nonsense; the end is what is wrong then.
            if (at_ > input_.data() + input_.available()) fail_at(input_.data() + input_.available(), kTruncated, kCopyAgain);
            fail_at(at_, problem.what, problem.hint);
        } catch (const std::length_error& problem) {
            fail_at(at_, problem.what(), "the file is damaged or no trace");
        }
    }

private:
    static constexpr const char* kTruncated = "the pickle ends in the middle";
    static constexpr const char* kCopyAgain = "the file is incomplete: record or copy it again";
    static constexpr const char* kDamaged = "the file is damaged or no pickle";

    FRAGSIM_HOT Value execute();

    [[noreturn]] void fail_at(const unsigned char* at, std::string_view what, const std::string& hint) const {
        const std::uint64_t offset = input_.offset() + static_cast<std::uint64_t>(at - input_.data());
        throw Error(ErrorCode::input, fmt::format("{}: offset {}: {}", input_.name(), offset, what), hint);
    }
    FRAGSIM_COLD [[noreturn]] static void damaged(std::string what) { throw Malformed{std::move(what), kDamaged}; }
    [[noreturn]] void refuse(const unsigned char* p, const Value* top);

    // --- the stack: values_[0 .. top), marks are heights -----------------------------------------------------------
    FRAGSIM_COLD Value* grow_stack(Value* top) {
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
    FRAGSIM_INLINE void need(const Value* top, std::ptrdiff_t count) {
        if (top - bottom() < count) [[unlikely]]
            damaged("an opcode finds too few values on the stack");
    }

    // --- the memo --------------------------------------------------------------------------------------------------
    void put(std::uint64_t index, Value value) {
        // An honest pickler numbers from 0, so a number is never larger than the count of bytes before it.
        if (index > input_.offset() + static_cast<std::uint64_t>(at_ - input_.data()) + 1)
            damaged(fmt::format("memo number {} is out of all proportion", index));
        memo_.put(index, value);
    }
    FRAGSIM_INLINE Value get(std::uint64_t index) const {
        const Value value = memo_.get(index);
        if (value.is(ValueKind::unset)) [[unlikely]]
            never_set(index);
        return value;
    }
    FRAGSIM_COLD [[noreturn]] static void never_set(std::uint64_t index) {
        damaged(fmt::format("memo entry {} was never set", index));
    }

    // --- operands of variable length -------------------------------------------------------------------------------
    // These take the cursor and give it back, as the buffer may move.

    // `count` bytes at `p`, read in as far as necessary: where they are now.
    const unsigned char* demand(const unsigned char* p, std::uint64_t count) {
        if (static_cast<std::int64_t>(count) <= end_ - p && count <= kMaxOperand) [[likely]]
            return p;
        return demand_more(p, count);
    }
    FRAGSIM_COLD const unsigned char* demand_more(const unsigned char* p, std::uint64_t count) {
        advance_to(p);
        const bool complete = input_.fill(count) >= count;
        at_ = input_.data();
        end_ = at_ + input_.available();
        if (!complete) truncated_at(end_ + 1);
        return at_;
    }
    void advance_to(const unsigned char* p) {
        if (p > end_) truncated_at(p);
        input_.advance(static_cast<std::size_t>(p - input_.data()));
    }
    [[noreturn]] void truncated_at(const unsigned char* at) {
        at_ = at;
        damaged(kTruncated);
    }
    static std::string_view text_at(const unsigned char* p, std::uint64_t count) {
        return {reinterpret_cast<const char*>(p), count};
    }
    // Up to the next newline; the cursor behind it is p + line.size() + 1, where p is where the text lies.
    std::string_view line(const unsigned char* p);
    static const unsigned char* after(std::string_view line) {
        return reinterpret_cast<const unsigned char*>(line.data()) + line.size() + 1;
    }
    const unsigned char* skip(const unsigned char* p, std::uint64_t count);
    Value long_integer(const unsigned char* from, std::uint64_t count);

    FRAGSIM_HOT Cursor dict_literal(Cursor cursor);
    bool look_up(DictShape::Key& key, std::uint64_t word) const;
    const unsigned char* memoized(const unsigned char* p, Value value);
    const unsigned char* plain_value(const unsigned char* p, Value& value);

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
    PickleMemo memo_;
    DictShape shape_;
    std::uint32_t dicts_ = 0, lists_ = 0;
};

// The common form of a dict, in one go: MARK, keys by reference each with a plain value, SETITEMS. Does only what the
// opcodes would do one by one, and stops before the first that it does not know; so the mark and the pairs that it
// leaves then are what the machine needs to go on.
Cursor Machine::dict_literal(Cursor cursor) {
    auto [p, top] = cursor;
    const unsigned char* const limit = end_ - kMargin;
    if (end_ - p < kMargin || stack_end_ - top < static_cast<std::ptrdiff_t>(2 * DictShape::kMaxKeys)) return cursor;
    p = memoized(p, top[-1]);
    if (*p != static_cast<unsigned char>(Opcode::mark) || marks_.size() == kMaxMarks) return {p, top};
    ++p;
    Value* const first = top;
    marks_.push_back(static_cast<std::uint32_t>(top - stack_.data()));
    if (shape_.memo_replaced != memo_.replaced()) shape_ = {.keys = {}, .memo_replaced = memo_.replaced()};

    for (DictShape::Key& key : shape_.keys) {
        if (p > limit) break;
        const auto word = load<std::uint64_t>(p);
        if ((word & key.mask) != key.bytes && !look_up(key, word)) {
            if (*p != static_cast<unsigned char>(Opcode::setitems)) break;
            at_ = p;
            marks_.shrink(marks_.size() - 1);
            sink_.set_items(first[-1].index(), {first, top});
            return {p + 1, first};
        }
        *top++ = key.key;
        p += key.length;
        const unsigned char* const behind = plain_value(p, *top);
        if (behind == nullptr) break;
        p = behind;
        ++top;
    }
    return {p, top};
}

// Makes `key` the one that `word` refers to; false if it refers to none.
bool Machine::look_up(DictShape::Key& key, std::uint64_t word) const {
    const auto opcode = static_cast<Opcode>(word & 0xff);
    if (opcode != Opcode::binget && opcode != Opcode::long_binget) return false;
    const std::ptrdiff_t length = opcode == Opcode::binget ? 2 : 5;
    const std::uint64_t mask = (std::uint64_t{1} << 8 * length) - 1;
    Value value;
    if (!memo_.get_plain((word & mask) >> 8, value)) return false;
    key = {word & mask, mask, length, value};
    return true;
}

// Puts `value` into the memo if the opcode at `p` says so, in the order in which picklers count; where that opcode ends.
FRAGSIM_INLINE inline const unsigned char* Machine::memoized(const unsigned char* p, Value value) {
    switch (static_cast<Opcode>(*p)) {
        case Opcode::memoize: memo_.push(value); return p + 1;
        case Opcode::binput: return memo_.push_as(p[1], value) ? p + 2 : p;
        case Opcode::long_binput: return memo_.push_as(load<std::uint32_t>(p + 1), value) ? p + 5 : p;
        default: return p;
    }
}

// The value at `p` if it is a plain one; where it ends, or null. What varies from record to record (the width of a
// size, the width of a reference) is computed and not branched on, so that the branches repeat with every record.
FRAGSIM_INLINE inline const unsigned char* Machine::plain_value(const unsigned char* p, Value& value) {
    const std::uint8_t opcode = *p;
    if (opcode == static_cast<std::uint8_t>(Opcode::long_binget)) return memo_.get_plain(load<std::uint32_t>(p + 1), value) ? p + 5 : nullptr;
    if (opcode == static_cast<std::uint8_t>(Opcode::long1)) {
        const unsigned count = p[1];
        if (count - 1u >= 8u) return nullptr;
        const std::int64_t number = sign_extend(load<std::uint64_t>(p + 2), count);
        value = Value::of(ValueKind::integer, number);
        return value.payload() == number ? p + 2 + count : nullptr;
    }
    if (opcode - static_cast<unsigned>(Opcode::binint) <= 3u) {
        struct Layout {
            std::uint32_t mask, sign;
            std::uint64_t length;
        };
        static constexpr std::array<Layout, 4> kLayouts{{{0xffffffff, 0x80000000, 5}, {0xff, 0, 2}, {0, 0, 0}, {0xffff, 0, 3}}};
        const Layout& layout = kLayouts[opcode - static_cast<unsigned>(Opcode::binint)];
        if (layout.length == 0) return nullptr;  // LONG
        const std::int64_t bits = load<std::uint32_t>(p + 1) & layout.mask;
        value = Value::of(ValueKind::integer, (bits ^ layout.sign) - layout.sign);
        return p + layout.length;
    }
    if (opcode == static_cast<std::uint8_t>(Opcode::binget)) return memo_.get_plain(p[1], value) ? p + 2 : nullptr;
    if (opcode == static_cast<std::uint8_t>(Opcode::short_binunicode) || opcode == static_cast<std::uint8_t>(Opcode::binunicode)) {
        const bool is_short = opcode == static_cast<std::uint8_t>(Opcode::short_binunicode);
        const std::ptrdiff_t count = is_short ? p[1] : load<std::uint32_t>(p + 1);
        const unsigned char* const text = p + (is_short ? 2 : 5);
        if (count > end_ - text - kMargin) return nullptr;
        value = values_.string(values_.strings.intern(text_at(text, static_cast<std::uint64_t>(count))));
        return memoized(text + count, value);
    }
    if (opcode == static_cast<std::uint8_t>(Opcode::newtrue) || opcode == static_cast<std::uint8_t>(Opcode::newfalse)) {
        value = Value::of(ValueKind::boolean, opcode == static_cast<std::uint8_t>(Opcode::newtrue));
        return p + 1;
    }
    return nullptr;
}

Value Machine::execute() {
    const unsigned char* p = at_ = end_ = input_.data();
    Value* top = grow_stack(stack_.data());
    for (;;) {
        if (end_ - p < kMargin) [[unlikely]] {
            at_ = p;
            advance_to(p);
            input_.fill(static_cast<std::size_t>(kMargin));
            p = at_ = input_.data();
            end_ = p + input_.available();
            if (p == end_) truncated_at(end_ + 1);
        }
        if (top == stack_end_) [[unlikely]]
            top = grow_stack(top);  // no opcode pushes more than one value

        const unsigned char* const opcode = p++;
        switch (static_cast<Opcode>(*opcode)) {
            // References and numbers: the bulk of a snapshot.
            case Opcode::long_binget: {
                const auto index = load<std::uint32_t>(p);
                at_ = p += 4;
                *top++ = get(index);
                break;
            }
            case Opcode::binget: {
                const std::uint8_t index = *p++;
                at_ = p;
                *top++ = get(index);
                break;
            }
            case Opcode::binint:
                *top++ = Value::of(ValueKind::integer, load<std::int32_t>(p));
                p += 4;
                break;
            case Opcode::binint1:
                *top++ = Value::of(ValueKind::integer, *p++);
                break;
            case Opcode::binint2:
                *top++ = Value::of(ValueKind::integer, load<std::uint16_t>(p));
                p += 2;
                break;
            case Opcode::long1: {
                const std::uint8_t count = *p++;
                if (count - 1u < 7u) [[likely]] {  // 1 to 7 bytes: sign-extended by shifting
                    *top++ = Value::of(ValueKind::integer, sign_extend(load<std::uint64_t>(p), count));
                } else {
                    at_ = opcode;
                    p = demand(p, count);
                    *top++ = long_integer(p, count);
                }
                p += count;
                break;
            }
            case Opcode::short_binunicode:
            case Opcode::short_binstring: {
                at_ = opcode;
                const std::uint8_t count = *p++;
                p = demand(p, count);
                *top++ = values_.string(values_.strings.intern(text_at(p, count)));
                p += count;
                break;
            }
            case Opcode::memoize:
                at_ = opcode;
                need(top, 1);
                memo_.push(top[-1]);
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
            case Opcode::empty_dict: {
                at_ = opcode;
                *top++ = Value::of(ValueKind::dict, new_dict());
                const Cursor cursor = dict_literal({p, top});
                p = cursor.p;
                top = cursor.top;
                break;
            }
            case Opcode::empty_list:
                at_ = opcode;
                *top++ = Value::of(ValueKind::list, new_list());
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
                *top++ = Value::of(ValueKind::dict, dict);
                break;
            }
            case Opcode::list: {
                at_ = opcode;
                Value* first = pop_mark();
                const std::uint32_t list = new_list();
                if (top != first) sink_.append(list, {first, top});
                top = first;
                *top++ = Value::of(ValueKind::list, list);
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
                *top++ = made;
                break;
            }
            case Opcode::tuple: {
                at_ = opcode;
                Value* first = pop_mark();
                const Value made = make_tuple(first, top);
                top = first;
                *top++ = made;
                break;
            }
            case Opcode::empty_tuple:
                at_ = opcode;
                *top = make_tuple(top, top);
                ++top;
                break;
            case Opcode::empty_set:
                *top++ = Value::of(ValueKind::other);
                break;
            case Opcode::frozenset:
                at_ = opcode;
                top = pop_mark();
                *top++ = Value::of(ValueKind::other);
                break;

            // Constants and rarer scalars.
            case Opcode::none:
                *top++ = Value::of(ValueKind::none);
                break;
            case Opcode::newtrue:
                *top++ = Value::of(ValueKind::boolean, 1);
                break;
            case Opcode::newfalse:
                *top++ = Value::of(ValueKind::boolean, 0);
                break;
            case Opcode::binfloat:
                *top++ = values_.real(load_big_endian_double(p));
                p += 8;
                break;
            case Opcode::long4: {
                at_ = opcode;
                const auto count = load<std::int32_t>(p);
                p += 4;
                if (count < 0) damaged("an integer of negative length");
                p = demand(p, static_cast<std::uint64_t>(count));
                *top++ = long_integer(p, static_cast<std::uint64_t>(count));
                p += count;
                break;
            }
            case Opcode::binunicode:
            case Opcode::binstring: {
                at_ = opcode;
                const auto count = load<std::uint32_t>(p);
                p += 4;
                p = demand(p, count);
                *top++ = values_.string(values_.strings.intern(text_at(p, count)));
                p += count;
                break;
            }
            case Opcode::binunicode8: {
                at_ = opcode;
                const auto count = load<std::uint64_t>(p);
                p += 8;
                p = demand(p, count);
                *top++ = values_.string(values_.strings.intern(text_at(p, count)));
                p += count;
                break;
            }
            case Opcode::short_binbytes: {
                at_ = opcode;
                const std::uint64_t count = *p++;
                p = skip(p, count);
                *top++ = Value::of(ValueKind::other);
                break;
            }
            case Opcode::binbytes: {
                at_ = opcode;
                const std::uint64_t count = load<std::uint32_t>(p);
                p += 4;
                p = skip(p, count);
                *top++ = Value::of(ValueKind::other);
                break;
            }
            case Opcode::binbytes8:
            case Opcode::bytearray8: {
                at_ = opcode;
                const auto count = load<std::uint64_t>(p);
                p += 8;
                p = skip(p, count);
                *top++ = Value::of(ValueKind::other);
                break;
            }

            // Protocol 0.
            case Opcode::int_text:
            case Opcode::long_text: {
                at_ = opcode;
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<Value> value = parse_integer(text, values_);
                if (!value) damaged("text that is no integer");
                *top++ = *value;
                break;
            }
            case Opcode::float_text: {
                at_ = opcode;
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<double> value = parse_real(text);
                if (!value) damaged("text that is no float");
                *top++ = values_.real(*value);
                break;
            }
            case Opcode::string_text: {
                at_ = opcode;
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<std::string> plain = unquote(text);
                if (!plain) damaged("text that is no quoted string");
                *top++ = values_.string(values_.strings.intern_exact(*plain));
                break;
            }
            case Opcode::unicode_text: {
                at_ = opcode;
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<std::string> plain = unescape_unicode(text);
                if (!plain) damaged("text that is no escaped string");
                *top++ = values_.string(values_.strings.intern_exact(*plain));
                break;
            }
            case Opcode::put_text: {
                at_ = opcode;
                need(top, 1);
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<std::uint64_t> index = parse_index(text);
                if (!index) damaged("text that is no memo number");
                put(*index, top[-1]);
                break;
            }
            case Opcode::get_text: {
                at_ = opcode;
                const std::string_view text = line(p);
                p = after(text);
                const std::optional<std::uint64_t> index = parse_index(text);
                if (!index) damaged("text that is no memo number");
                *top++ = get(*index);
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
                *top = top[-1];
                ++top;
                break;
            case Opcode::stop:
                at_ = opcode;
                need(top, 1);
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
            const std::string_view first = line(p);
            const std::string module(first);
            subject = fmt::format(" ({}.{})", module, line(after(first)));
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

std::string_view Machine::line(const unsigned char* p) {
    std::size_t known = 0;
    for (;;) {
        p = demand(p, known + 1);
        const auto at_hand = static_cast<std::size_t>(end_ - p);
        const void* newline = std::memchr(p + known, '\n', at_hand - known);
        if (newline != nullptr) return text_at(p, static_cast<std::size_t>(static_cast<const unsigned char*>(newline) - p));
        known = at_hand;
    }
}

const unsigned char* Machine::skip(const unsigned char* p, std::uint64_t count) {
    constexpr std::uint64_t kStep = 64 * 1024;
    while (count > 0) {
        const std::uint64_t step = std::min(count, kStep);
        p = demand(p, step) + step;
        count -= step;
    }
    return p;
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
