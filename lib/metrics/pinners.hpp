// Who keeps free memory apart: the blocks in use next to free ranges.
#pragma once

#include <string>
#include <vector>

#include "lib/policy/policy.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

// Blocks of one call site, or without call stacks of about one size and age.
struct Pinner {
    std::string who;                               // "model.py:12 forward", or "1.00 MiB to 2.00 MiB"
    bool call_site = false;                        // what `who` is
    std::int64_t blocks = 0;                       // that lie beside free ranges
    Bytes bytes = 0;                               // theirs
    Bytes free_bytes = 0;                          // of the free ranges beside them, each once
    std::int64_t ranges = 0;                       // those
    std::uint32_t oldest_op = 0, youngest_op = 0;  // at which these blocks were allocated; 0 also: before the recording
};

// Of the segments that may serve `asking`; `op`: now. The ones beside most free bytes first, at most `most`.
std::vector<Pinner> find_pinners(const Trace& trace, const Policy& policy, const MemoryPicture& picture,
    const Request& asking, std::uint32_t op, std::size_t most);

// The largest free ranges there, descending, at most `most`.
std::vector<Bytes> largest_ranges(
    const Policy& policy, const MemoryPicture& picture, const Request& asking, std::size_t most);

}  // namespace fragsim
