#include "lib/trace/call_site.hpp"

#include <algorithm>

namespace fragsim {
namespace {

bool is_python(const StackFrame& frame) { return frame.file.ends_with(".py"); }

bool is_torch(const StackFrame& frame) { return frame.file.find("/torch/") != std::string::npos; }

// The last two parts: enough to find the file, short enough for a table.
std::string short_path(const std::string& path) {
    const std::size_t last = path.rfind('/');
    if (last == std::string::npos || last == 0) return path;
    const std::size_t before = path.rfind('/', last - 1);
    return before == std::string::npos ? path : path.substr(before + 1);
}

}  // namespace

std::string call_site(const Trace& trace, BufferId buffer) {
    if (!buffer || buffer.value >= trace.buffers.size()) return "";
    const StackId stack = trace.buffers[buffer.value].stack;
    if (!stack) return "";
    const auto begin = trace.stack_frames.begin() + trace.stack_begin[stack.value],
               end = trace.stack_frames.begin() + trace.stack_begin[stack.value + 1];
    if (begin == end) return "";
    const auto frame = [&](std::uint32_t index) -> const StackFrame& { return trace.frames[index]; };
    auto found = std::find_if(begin, end, [&](std::uint32_t i) { return is_python(frame(i)) && !is_torch(frame(i)); });
    if (found == end) found = std::find_if(begin, end, [&](std::uint32_t i) { return is_python(frame(i)); });
    if (found == end) return frame(*begin).function;
    return short_path(frame(*found).file) + ':' + std::to_string(frame(*found).line) + ' ' + frame(*found).function;
}

}  // namespace fragsim
