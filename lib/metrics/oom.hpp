// Why a request could not be served. Source: spec/policies.md, section 11.6.
#pragma once

#include <optional>

#include "lib/policy/policy.hpp"

namespace fragsim {

enum class OomCause {
    capacity,          // requested bytes alone exceed a bound: no allocator could do it
    internal,          // rounding alone makes it exceed the capacity
    unreleased,        // wholly free segments were not given back
    stream_pending,    // it would fit if no free waited for another stream, or fits since they were waited for
    other_size_class,  // a free range that would do is kept for blocks of other sizes
    remappable,        // wholly free 2 MiB pages would do, put together
    compaction,        // only moving live data would do
    policy_limit,      // refused by a limit of the policy while the device had room
    rejected,          // refused before anything cached was given back, as the settings ask for
    other,             // a bug in the model if it occurs
};
const char* name(OomCause cause);

struct Oom {
    std::uint32_t op;
    StreamId stream;
    Bytes requested;
    Bytes rounded;  // as the policy does
    Bytes reserved, allocated, active;
    Bytes live_requested;  // without what waits for other streams
    Bytes largest_free;    // of the ranges that may serve such a request
    Bytes free_total;      // inside reserved memory, whoever it is kept for
    Bytes releasable;      // of it, in wholly free segments
    Bytes device_free;     // what may still be reserved; -1 without a bound on it
    // How the free bytes are cut up, judged by this request (FreeSpace).
    double external_fragmentation, unusable_index, unusable_index_blocks, fragmentation_index;
    OomCause cause;
    bool fits_if_compacted;
    Bytes shortfall;  // rounded - max(largest_free, device_free)
};

// Judges the policy's state right after it refused the request. `rejected`: it gave nothing back first (Step).
Oom attribute_oom(
    const Policy& policy, std::uint32_t op, const Request& request, const Bounds& bounds, bool rejected = false);

}  // namespace fragsim
