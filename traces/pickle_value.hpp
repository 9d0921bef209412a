// One value of a pickle in eight bytes: its kind and a number that is the value or says where it is kept.
#pragma once

#include <cstdint>
#include <string>

#include "lib/trace/flat_array.hpp"
#include "traces/intern_table.hpp"

namespace fragsim {

enum class ValueKind : std::uint8_t {
    none,
    boolean,     // payload 0 or 1
    integer,     // payload is the value
    wide,        // an integer too large for the payload: index into PickleValues::wide
    real,        // index into PickleValues::reals
    string,      // number in PickleValues::strings
    list,        // number of the list, counted from 0 in order of creation
    dict,        // number of the dict, likewise
    tuple,       // whatever PickleSink::tuple chose
    other,       // bytes and sets: read over
    unset = 14,  // a memo entry that nothing was put into
};

struct Value {
    std::uint64_t bits = 0;  // kind in the low 4 bits, signed payload above

    static constexpr std::int64_t kMaxPayload = (std::int64_t{1} << 59) - 1;

    static constexpr Value of(ValueKind kind, std::int64_t payload = 0) {
        return {static_cast<std::uint64_t>(payload) << 4 | static_cast<std::uint64_t>(kind)};
    }
    constexpr ValueKind kind() const { return static_cast<ValueKind>(bits & 15); }
    constexpr bool is(ValueKind kind) const { return this->kind() == kind; }
    constexpr std::int64_t payload() const { return static_cast<std::int64_t>(bits) >> 4; }
    constexpr std::uint32_t index() const { return static_cast<std::uint32_t>(bits >> 4); }
    friend constexpr bool operator==(Value, Value) = default;
};

// An integer outside the payload's range. Beyond 64 bits of magnitude only its sign is kept.
struct WideInteger {
    std::uint64_t magnitude;
    bool negative;
    bool overflow;
};

// What values refer to.
struct PickleValues {
    InternTable strings;
    FlatArray<WideInteger> wide;
    FlatArray<double> reals;

    Value integer(std::int64_t value) {
        if (value >= -Value::kMaxPayload && value <= Value::kMaxPayload) return Value::of(ValueKind::integer, value);
        const auto bits = static_cast<std::uint64_t>(value);
        return add_wide({value < 0 ? -bits : bits, value < 0, false});
    }
    Value add_wide(WideInteger value) {
        wide.push_back(value);
        return Value::of(ValueKind::wide, static_cast<std::int64_t>(wide.size() - 1));
    }
    Value real(double value) {
        reals.push_back(value);
        return Value::of(ValueKind::real, static_cast<std::int64_t>(reals.size() - 1));
    }
    Value string(std::uint32_t number) const { return Value::of(ValueKind::string, number); }
};

// For messages: "a string", "an integer".
inline const char* describe(Value value) {
    switch (value.kind()) {
        case ValueKind::none: return "None";
        case ValueKind::boolean: return "a boolean";
        case ValueKind::integer:
        case ValueKind::wide: return "an integer";
        case ValueKind::real: return "a float";
        case ValueKind::string: return "a string";
        case ValueKind::list: return "a list";
        case ValueKind::dict: return "a dict";
        case ValueKind::tuple: return "a tuple";
        case ValueKind::other:
        case ValueKind::unset: break;
    }
    return "a value of another kind";
}

}  // namespace fragsim
