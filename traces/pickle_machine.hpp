// The machine behind read_pickle: its state and what its two parts share. pickle.cpp executes opcodes one by one,
// pickle_literal.cpp takes the common form of a dict in one go.
//
// The machine keeps its cursor and stack top in locals (they live in registers) and hands them to the members only
// around calls that need them. Operands are read without looking at the end first: the input lets us read a little
// past it, and whoever finds the cursor behind the end reports a truncated file.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "traces/pickle.hpp"
#include "traces/pickle_memo.hpp"
#include "traces/pickle_opcodes.hpp"

namespace fragsim {

#define FRAGSIM_INLINE [[gnu::always_inline]]
#define FRAGSIM_COLD [[gnu::cold, gnu::noinline]]
#define FRAGSIM_HOT [[gnu::hot, gnu::noinline]]  // or the ways out by exception make the compiler take it for cold

// More than the longest opcode with fixed operands (LONG1 of 8 bytes, 10) plus what is peeked at behind it.
inline constexpr std::ptrdiff_t kMargin = 24;
static_assert(kMargin <= static_cast<std::ptrdiff_t>(Input::kReadAhead));

// A snapshot nests about ten deep; whatever nests deeper than this is none.
inline constexpr std::size_t kMaxMarks = 1000;
inline constexpr std::uint32_t kMaxObjects = 1u << 28;
inline constexpr std::uint64_t kMaxOperand = std::uint64_t{1} << 62;  // larger lengths are for the input to refuse

template <class T>
T load(const unsigned char* from) {  // little-endian, as the host is
    static_assert(std::endian::native == std::endian::little);
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// Of the lowest `count` bytes, 1 to 8.
inline std::int64_t sign_extend(std::uint64_t bits, unsigned count) {
    const unsigned unused = 64 - 8 * count;
    return static_cast<std::int64_t>(bits << unused) >> unused;
}

inline double load_big_endian_double(const unsigned char* from) {
    return std::bit_cast<double>(__builtin_bswap64(load<std::uint64_t>(from)));
}

struct PickleCursor {
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

class PickleMachine {
public:
    PickleMachine(Input& input, PickleValues& values, PickleSink& sink) : input_(input), values_(values), sink_(sink) {}

    Value run() {
        try {
            return execute();
        } catch (const Malformed& problem) {
            // Everything after the end reads as nonsense; the end is what is wrong then.
            if (at_ > input_.data() + input_.available())
                fail_at(input_.data() + input_.available(), kTruncated, kCopyAgain);
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

    FRAGSIM_HOT PickleCursor dict_literal(PickleCursor cursor);
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

}  // namespace fragsim
