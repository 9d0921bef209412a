// Reading a policy's parameters: their defaults, units and choices are those of its PolicyInfo, so that they are said
// once.
#pragma once

#include <span>

#include "lib/policy/policy.hpp"

namespace fragsim {

class ParameterReader {
public:
    // `known`: with defaults. Both must outlive this.
    ParameterReader(std::string_view policy, std::span<const PolicyParameter> known, const Parameters& given)
        : policy_(policy), known_(known), given_(given) {}

    // Each throws Error(usage) for a value that is not of its kind.
    Bytes bytes(std::string_view name) const;  // >= 0; "1048576", "1MiB"
    // As bytes, or "max"; what exceeds 63 bits is the maximum, too.
    Bytes bytes_or_max(std::string_view name) const;
    std::int64_t count(std::string_view name, std::int64_t least, std::int64_t most) const;
    double ratio(std::string_view name, double least, double most) const;
    bool flag(std::string_view name) const;  // "true", "false", "1", "0"
    // A parameter whose unit lists its values, as "best|worst": the index of the value.
    template <class Enum>
    Enum choice(std::string_view name) const {
        return static_cast<Enum>(choice_index(name));
    }
    // A power of two >= `least`.
    Bytes power_of_two(std::string_view name, Bytes least) const;

    [[noreturn]] void refuse(std::string_view name, std::string_view expected) const;

private:
    const PolicyParameter& parameter(std::string_view name) const;
    std::string_view value(std::string_view name) const;
    int choice_index(std::string_view name) const;

    std::string_view policy_;
    std::span<const PolicyParameter> known_;
    const Parameters& given_;
};

}  // namespace fragsim
