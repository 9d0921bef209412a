// What lay where, and from when to when, in a window of a replay: rectangles of address by time.
//
//   address
//      |   [ block ][   block        ]
//      |   [     segment                     ]
//      +--------------------------------------- op
//
// Made of Result::start and Result::history. Address space that nothing was in during the window is left out of
// `ranges`, so that segments far apart can be drawn side by side.
#pragma once

#include <vector>

#include "lib/study/run.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

struct MemoryMap {
    static constexpr std::uint32_t kNever = 0xffffffffu;

    struct Range {
        Address address;
        Bytes bytes;
    };
    // Reserved from op `begin` to before op `end`; a range that was given back in parts is several.
    struct Segment {
        Address address;
        Bytes bytes;
        std::uint32_t begin, end;  // kNever: it was still there
    };
    struct Block {
        BufferId buffer;
        Address address;
        Bytes bytes;               // as the policy set aside
        bool from_start;           // it was there before op 0, how long nobody knows
        std::uint32_t begin, end;  // `end` kNever: it was still there
        std::uint32_t let_go;      // the op at which the program let go; before `end` when other streams still used it
    };

    std::uint32_t first_op, end_op;  // the window
    std::vector<Range> ranges;       // by address; what touches is one
    std::vector<Segment> segments;   // in the order they ended
    std::vector<Block> blocks;       // likewise
};

// All that was there at some op of [first_op, end_op).
MemoryMap memory_map(const Trace& trace, const Result& result, std::uint32_t first_op, std::uint32_t end_op);

// The op at which reserved memory first was largest; needs Result::series with at least one op.
std::uint32_t peak_op(const Series& series);

}  // namespace fragsim
