// Where in the program an allocation was made, in one line.
#pragma once

#include <string>

#include "lib/trace/trace.hpp"

namespace fragsim {

// "file.py:line function" of the innermost Python frame that is not PyTorch's own; else of the innermost Python frame,
// else the innermost function. "": the buffer has no stack.
std::string call_site(const Trace& trace, BufferId buffer);

}  // namespace fragsim
