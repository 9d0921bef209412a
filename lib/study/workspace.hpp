// Requests that a program may do without.
//
// Convolution and matrix libraries ask for a workspace, use it in one call and free it. When it is refused they take a
// smaller one and go on, so that "out of memory" is right about the allocator and wrong about the program.
// Source: spec/full-card.md, "What a program does when memory is short".
#pragma once

#include <optional>
#include <string>

#include "lib/trace/trace.hpp"

namespace fragsim {

struct Workspace {
    std::uint32_t ops;    // from its allocation to its free
    std::string library;  // the library call its stack names; "": judged by its short life alone
};

// What the allocation at event `alloc` looks like. None: the program needs it, as far as the recording shows.
std::optional<Workspace> workspace_at(const Trace& trace, std::uint32_t alloc);

}  // namespace fragsim
