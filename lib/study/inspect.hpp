// What is in a trace, without replaying it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/metrics/fragmentation.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

// The memory in a picture: what the recording's allocator held, and how its free part is cut up.
struct PictureSummary {
    std::int64_t segments = 0, blocks = 0;
    Bytes reserved = 0, allocated = 0, pending = 0;
    Bytes releasable = 0;  // in wholly free segments
    FreeSpace free;
};
PictureSummary summarize(const MemoryPicture& picture);

struct TraceSummary {
    std::int64_t allocs = 0, frees = 0;  // ops
    std::int64_t pending_frees = 0;      // frees that waited for other streams
    std::int64_t empty_caches = 0, record_streams = 0;
    Bytes requested_peak = 0;          // live, the initial state included
    Bytes load = 0;                    // the same rounded to 512: no allocator can reserve less
    Bytes recorded_reserved_peak = 0;  // by the recorded segment events
    Bytes largest_request = 0;
    std::int64_t streams = 0;
    std::array<Bytes, 64> requested_by_log2{};  // bytes asked for by allocations of [2^k, 2^(k+1)) bytes
    std::int64_t duration_us = 0;               // 0 without time stamps
    std::optional<PictureSummary> start, end;
};
TraceSummary summarize(const Trace& trace);

// The steps of the program that fall into a trace's history, by the name of the annotation that marks most of them
// (PyTorch marks optimizer steps itself). None: nothing marks them.
struct Steps {
    std::string name;
    std::int64_t count = 0;
};
std::optional<Steps> count_steps(const Recording& recording, const Trace& trace);

}  // namespace fragsim
