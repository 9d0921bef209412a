// The sizes PyTorch's caching allocator makes of requests, as far as reading a recording needs them
// (c10/cuda/CUDACachingAllocator.cpp, round_size; unchanged from 2.2 to 2.13).
#pragma once

#include <array>
#include <bit>

#include "lib/core/types.hpp"

namespace fragsim {

inline constexpr Bytes kMinBlock = 512;
inline constexpr Bytes kSmallSize = kMiB;          // rounded requests up to this come from the small pool
inline constexpr Bytes kSmallSegment = 2 * kMiB;   // a segment of the small pool, and a page of one that expands
inline constexpr Bytes kLargeSegment = 20 * kMiB;  // a page of an expandable segment of the large pool

// roundup_power2_divisions: entry k is for requests from 2^k MiB on; 0 and 1 mean none.
using RoundupDivisions = std::array<std::int64_t, 16>;

inline Bytes round_request(Bytes requested, const RoundupDivisions& divisions) {
    if (requested < kMinBlock) return kMinBlock;
    const auto size = static_cast<std::uint64_t>(requested);
    const int log2 = 63 - std::countl_zero(size);
    const std::int64_t parts = divisions[static_cast<std::size_t>(log2 < 20 ? 0 : log2 > 35 ? 15 : log2 - 20)];
    if (parts <= 1 || requested <= kMinBlock * parts) return round_up(requested, kMinBlock);
    if (std::has_single_bit(size)) return requested;
    const Bytes step = (Bytes{1} << log2) / parts;
    return step == 0 ? Bytes{2} << log2 : round_up(requested, step);
}

}  // namespace fragsim
