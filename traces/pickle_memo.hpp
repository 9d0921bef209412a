// What a pickle can refer back to, by number. Every container and most strings of a document get an entry, and next to
// none of them is ever asked for, so an entry is four bytes: a value's lower half. Values that need more are boxed.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "lib/trace/flat_array.hpp"
#include "traces/pickle_value.hpp"

namespace fragsim {

class PickleMemo {
public:
    // Under the next number, as picklers count.
    void push(Value value) {
        if (used_ != entries_.size()) [[unlikely]]
            return put(used_, value);
        entries_.push_back(compact(value));
        ++used_;
    }

    // The same if `index` is the next number; otherwise false.
    bool push_as(std::uint64_t index, Value value) {
        if (index != entries_.size() || used_ != index) return false;
        push(value);
        return true;
    }

    // Memory grows with `index`; the caller sees to it that it is in proportion.
    void put(std::uint64_t index, Value value) {
        if (index >= entries_.size()) entries_.resize(index + 1, kUnset);
        const bool is_new = entries_[index] == kUnset;
        used_ += is_new;
        replaced_ += !is_new;
        entries_[index] = compact(value);
    }

    // A value of kind unset when there is none.
    Value get(std::uint64_t index) const {
        if (index >= entries_.size()) [[unlikely]]
            return {kUnset};
        const Value value{entries_[index]};
        return value.is(kBoxed) ? boxes_[value.index()] : value;
    }

    // The same for the common case; false when get() has to look closer.
    bool get_plain(std::uint64_t index, Value& value) const {
        if (index >= entries_.size()) [[unlikely]]
            return false;
        value = {entries_[index]};
        static_assert(kUnset == 14);
        return (value.bits & 14) != 14;  // neither unset nor boxed
    }

    // How often an entry changed after it was set.
    std::uint64_t replaced() const { return replaced_; }

private:
    static constexpr auto kBoxed = static_cast<ValueKind>(15);
    static constexpr auto kUnset = static_cast<std::uint32_t>(Value::of(ValueKind::unset).bits);

    std::uint32_t compact(Value value) {
        if (value.bits >> 32 == 0) [[likely]]
            return static_cast<std::uint32_t>(value.bits);
        if (boxes_.size() >> 28 != 0) throw std::length_error("more large values in the memo than any snapshot has");
        boxes_.push_back(value);
        return static_cast<std::uint32_t>(Value::of(kBoxed, static_cast<std::int64_t>(boxes_.size() - 1)).bits);
    }

    FlatArray<std::uint32_t> entries_;
    FlatArray<Value> boxes_;
    std::uint64_t used_ = 0;  // entries that are set
    std::uint64_t replaced_ = 0;
};

}  // namespace fragsim
