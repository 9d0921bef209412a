// Calls of empty_cache, read off the segments that a history shows released.
//
// PyTorch records what it gives back to the driver. Two callers do it in bulk: the program, through
// torch.cuda.empty_cache(), and the allocator itself, inside a malloc that the driver or a limit refused (or, with a
// garbage collection threshold, before it asks). Which of them it was is told by
//   1. the call stack of the release, where stacks were recorded for every entry: it names empty_cache, or it is the
//      stack of the request that follows;
//   2. what is recorded next: a malloc that releases memory gets its own segment afterwards, or fails;
//   3. the memory at that moment (RecordedMemory): a request that the cache could have served releases nothing, the two
//      callers release in orders of their own, and a request is not refused where more was reserved at another time.
// Where all of these allow both, it was a malloc: then an empty_cache right before it would have had the same effect on the
// recorded device. A single such release is no proof of a limit, though (Trace::doubtful_refusal): recorded programs have
// called empty_cache right before they allocated more than ever.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/pytorch_recorded_memory.hpp"
#include "traces/pytorch_records.hpp"

namespace fragsim {

enum class ReleaseCause : std::uint8_t {
    malloc,             // the allocator, on behalf of the request that follows
    named_empty_cache,  // the call stack says so
    empty_cache,        // what follows shows that it was no malloc
    open,               // stacks and order allow both
};

// Releases without anything but completed frees between them. Counted in segment entries of the history, which are the
// segment events of its trace.
struct ReleaseRun {
    std::uint32_t first, count;
    ReleaseCause cause;
    std::int64_t time_us;
};

// In order; by rules 1 and 2.
std::vector<ReleaseRun> find_release_runs(const Snapshot& snapshot, int device);

// Decides the open runs by rule 3 and puts an empty_cache event before the releases of each that was one. `trace` is
// finished, without such events. Streams are numbered in the order of their handles.
void insert_empty_caches(Trace& trace, std::vector<ReleaseRun> runs, const AllocatorRules& rules);

}  // namespace fragsim
