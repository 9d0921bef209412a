// What bounds the memory of a process. The two limits act differently, so they are kept apart:
//
//   capacity      The card has no more: the driver refuses, and a policy does what it can about that.
//   memory_limit  PyTorch does not ask for more: torch.cuda.set_per_process_memory_fraction. Its native allocator counts
//                 the bytes it has reserved, backend:cudaMallocAsync those in use. Other allocators have no such limit
//                 of their own; for them the device refuses at it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "lib/core/types.hpp"

namespace fragsim {

struct Limits {
    std::optional<Bytes> capacity = {};
    std::optional<Bytes> memory_limit = {};

    // The smaller of the two; none: no bound.
    std::optional<Bytes> bound() const {
        if (!capacity || !memory_limit) return capacity ? capacity : memory_limit;
        return std::min(*capacity, *memory_limit);
    }
    friend bool operator==(const Limits&, const Limits&) = default;
};

// As people write them; "" and "none": no such limit. The memory limit is a size, or a share of the capacity ("80%",
// "0.8"); all of it is no limit, as for PyTorch. Throws Error(usage).
Limits parse_limits(std::string_view capacity, std::string_view memory_limit);

// "capacity 9.79 GiB", "memory limit 8 GiB", both, or "no capacity limit".
std::string describe(const Limits& limits);

// The same limits by what is counted against them, for one policy.
struct Bounds {
    std::optional<Bytes> reserved = {};  // bytes got from the device
    std::optional<Bytes> used = {};      // bytes in the program's hands, as requested
};

}  // namespace fragsim
