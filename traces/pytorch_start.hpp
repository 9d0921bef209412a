// The allocator's memory when the history began, worked out backwards from its end.
//
// The segments of the snapshot, undone through the segment entries of the history, give the segments of the start. The
// blocks in use then are known from the blocks at the end and from frees of addresses that the history never allocated.
// A free tells only the requested size. Small and expandable memory rounds it to the block's size; in a large segment
// that does not expand, the allocator keeps up to 1 MiB behind a block unsplit, so that
//
//     | block r |  gap  | next block in use, or the segment's end     r = rounded request
//
//     gap <= 1 MiB: the block takes it (no free block of that size can exist there)
//     gap >  1 MiB: the block ends where the history, while it is in use, allocates within 1 MiB behind r; else at r
//
// What lies between is free, in blocks as large as they can be.
#pragma once

#include <span>
#include <vector>

#include "lib/core/diagnostics.hpp"
#include "lib/trace/trace.hpp"
#include "traces/pytorch_empty_cache.hpp"
#include "traces/pytorch_history.hpp"

namespace fragsim {

struct StartInput {
    std::span<const EntryRecord> entries;
    const MemoryPicture* final;  // null: the snapshot shows no segment
    const Trace& trace;          // with its segment events
    const AllocatorRules& rules;
    int device;
};

// Empty when nothing was in use or cached. A block that lies in no segment gets one of its own and is counted. Throws
// Malformed when blocks overlap.
MemoryPicture rebuild_start(const StartInput& input, std::vector<StartBlock> blocks, Diagnostics& diagnostics);

}  // namespace fragsim
