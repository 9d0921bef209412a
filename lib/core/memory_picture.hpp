// A picture of an allocator's memory at one moment: segments got from the device, and the blocks that tile them.
// A recording carries one for its end, one is rebuilt for its start, and every policy can draw its own.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim {

// PyTorch's names of memory pools: (0, 0) is the default one, (n, 0) belongs to a graph, (0, n) is a MemPool.
using PoolName = std::pair<std::int64_t, std::int64_t>;

// Spelled as PyTorch's snapshots spell them.
enum class BlockState : std::uint8_t { inactive, active_allocated, active_pending_free };

struct BlockPicture {
    Address address;
    Bytes size;
    Bytes requested;  // meaningful when not inactive
    BufferId buffer;  // the buffer that has the block; none when inactive or unknown
    BlockState state;
};

struct SegmentPicture {
    Address address;
    Bytes size;
    StreamId stream;
    std::uint16_t pool;         // memory pool: index into Trace::pools; 0 is the default one
    bool small;                 // holds small blocks (PyTorch: up to 1 MiB)
    bool expandable;            // a mapped range of an expandable segment
    std::uint32_t first_block;  // blocks [first_block, first_block + block_count) tile the segment in address order
    std::uint32_t block_count;
};

struct MemoryPicture {
    std::vector<SegmentPicture> segments;  // by address
    std::vector<BlockPicture> blocks;
};

}  // namespace fragsim
