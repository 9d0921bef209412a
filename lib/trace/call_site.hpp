// Where in a program a buffer was allocated: one frame that stands for a recorded call stack.
#pragma once

#include <string>

#include "lib/trace/trace.hpp"

namespace fragsim {

// The innermost frame of the program itself: Python, and not a file of an installed package. Else the innermost Python
// frame, else the innermost one; none for an empty stack.
const StackFrame* program_frame(const Trace& trace, StackId stack);

// "train.py:84 step", the file without its folders; "" for none.
std::string call_site(const Trace& trace, StackId stack);

}  // namespace fragsim
