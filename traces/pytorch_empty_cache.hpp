// Calls of empty_cache, read off the segments that a history shows released.
//
// PyTorch records what it gives back to the driver but not why. Two callers do it in bulk: the program, through
// torch.cuda.empty_cache(), and the allocator itself, inside a malloc that the driver refused (or, with a garbage
// collection threshold, before it asks). What follows tells them apart:
//
//     free_completed*  segment_free+   segment_alloc  alloc     recovery: the malloc then got its new segment
//     free_completed*  segment_free+   oom                      recovery: it still did not
//     free_completed*  segment_free+   anything else            empty_cache
//
// (segment_unmap and segment_map likewise for expandable segments.) A program that empties the cache just before it
// needs a new segment looks like a recovery. It was not one if the request would have fitted into one of the released
// segments: the allocator does not release what it could hand out. Segments that became free only within the same call
// (by its free_completed entries) do not count, and neither do blocks that max_split_size keeps from the request.
// A garbage collection that frees segments for a request then served by the driver is a recovery by this rule, too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/pytorch_records.hpp"

namespace fragsim {

struct AllocatorRules {
    RoundupDivisions roundup{};
    Bytes max_split_size = -1;  // -1: no limit
};

// A run of releases in a history, as half-open range of entries beginning with the first release.
struct ReleaseRun {
    std::uint32_t begin, end;
    bool empty_cache;
};

// In order. Completed frees at the end of a run belong to what comes after it.
std::vector<ReleaseRun> find_release_runs(std::span<const EntryRecord> entries, const AllocatorRules& rules);

}  // namespace fragsim
