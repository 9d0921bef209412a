// What PyTorch's native allocator asks the driver for: segments of a few sizes.
// Source: spec/pytorch-caching-allocator.md, section 4.3 (all versions from 2.0 on).
#pragma once

#include "lib/core/types.hpp"

namespace fragsim::pytorch {

inline constexpr Bytes kSmallMax = kMiB;           // rounded sizes up to this live in the small pool
inline constexpr Bytes kSmallSegment = 2 * kMiB;   // segments of the small pool
inline constexpr Bytes kMidLimit = 10 * kMiB;      // below this, large blocks come from segments of one size
inline constexpr Bytes kLargeSegment = 20 * kMiB;  // that size, unless large_segment_size_mb says another
inline constexpr Bytes kLargeRounding = 2 * kMiB;  // unit of segments made to measure

// The segment for a block that nothing cached can hold. `rounded`: the block's size.
constexpr Bytes torch_segment_size(Bytes rounded, Bytes large_segment = kLargeSegment) {
    if (rounded <= kSmallMax) return kSmallSegment;
    return rounded < kMidLimit ? large_segment : round_up(rounded, kLargeRounding);
}

}  // namespace fragsim::pytorch
