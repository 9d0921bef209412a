// Quantities and identifiers every layer speaks: bytes, addresses, dense typed ids.
#pragma once

#include <compare>
#include <cstdint>

namespace fragsim {

using Bytes = std::int64_t;     // a size or a difference of sizes
using Address = std::uint64_t;  // a device virtual address

inline constexpr Bytes kKiB = Bytes{1} << 10;
inline constexpr Bytes kMiB = Bytes{1} << 20;
inline constexpr Bytes kGiB = Bytes{1} << 30;

constexpr Bytes round_up(Bytes value, Bytes unit) { return (value + unit - 1) / unit * unit; }

// A dense index that cannot be mixed up with another kind's. Ids count from 0 in order of first appearance
// unless the table they index says otherwise.
template <class Tag>
struct Id {
    static constexpr std::uint32_t kNone = 0xffffffffu;
    std::uint32_t value = kNone;

    constexpr explicit operator bool() const { return value != kNone; }
    friend constexpr auto operator<=>(Id, Id) = default;
};

using BufferId = Id<struct BufferTag>;  // one allocation of the traced program, from alloc to free
using StreamId = Id<struct StreamTag>;  // ordered as the raw stream handles are (0, the default stream, first)
using StackId = Id<struct StackTag>;    // a recorded call stack

}  // namespace fragsim
