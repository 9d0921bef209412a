// The statistics of torch.cuda.memory_stats(), kept by every policy while it works.
// Source: spec/pytorch-caching-allocator.md, section 16.
#pragma once

#include <array>
#include <cstdint>

#include "lib/core/types.hpp"

namespace fragsim {

enum class SizeClass : std::uint8_t { small, large };

struct Stat {
    Bytes current = 0;
    Bytes peak = 0;       // largest current so far
    Bytes allocated = 0;  // sum of increases

    Bytes freed() const { return allocated - current; }

    void increase(Bytes amount) {
        current += amount;
        allocated += amount;
        if (current > peak) peak = current;
    }
    void decrease(Bytes amount) { current -= amount; }
    // One net change is one increase or one decrease, never both.
    void change(Bytes net) { net > 0 ? increase(net) : decrease(-net); }
};

// all.current == sum of the classes' current, all.allocated == sum of theirs; all.peak is its own. Policies that do not
// tell small from large keep `all` only.
struct StatArray {
    Stat all;
    std::array<Stat, 2> by_class;

    void increase(SizeClass c, Bytes amount) {
        by_class[static_cast<std::size_t>(c)].increase(amount);
        all.increase(amount);
    }
    void decrease(SizeClass c, Bytes amount) {
        by_class[static_cast<std::size_t>(c)].decrease(amount);
        all.decrease(amount);
    }
    // One net change is one increase or one decrease, never both.
    void change(SizeClass c, Bytes net) { net > 0 ? increase(c, net) : decrease(c, -net); }
};

struct AllocatorStats {
    // Counts.
    StatArray allocation;      // blocks in the program's hands
    StatArray active;          // the same, and blocks whose free waits for other streams
    StatArray segment;         // ranges got from the device
    StatArray inactive_split;  // free blocks that share a segment with others
    // Bytes of those blocks.
    StatArray allocated_bytes, active_bytes, reserved_bytes, inactive_split_bytes;
    StatArray requested_bytes;  // what the program asked for in the active blocks
    // Blocks and segments of max_split_size or more.
    Stat oversize_allocations, oversize_segments;

    std::int64_t num_alloc_retries = 0;     // flushes followed by another try
    std::int64_t num_ooms = 0;              // requests that failed after it
    std::int64_t num_oom_rejections = 0;    // requests refused by throw_on_cudamalloc_oom
    std::int64_t num_sync_all_streams = 0;  // waits for every stream's pending frees
    std::int64_t num_device_alloc = 0;      // successful requests to the device
    std::int64_t num_device_free = 0;
    // Not PyTorch's: how the requests were served.
    std::int64_t num_splits = 0, num_coalesces = 0;

    // Equation, at any time: reserved_bytes == active_bytes + inactive_split_bytes + bytes of wholly free segments.
};

}  // namespace fragsim
