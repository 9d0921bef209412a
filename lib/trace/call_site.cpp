#include "lib/trace/call_site.hpp"

#include <fmt/format.h>

namespace fragsim {
namespace {

bool is_python(const StackFrame& frame) { return frame.file.ends_with(".py"); }

bool is_installed(const StackFrame& frame) {
    for (const char* folder : {"/site-packages/", "/dist-packages/", "/lib/python3"})
        if (frame.file.find(folder) != std::string::npos) return true;
    return false;
}

// What stands on top of every C++ stack: the recorder taking it, and the allocator.
bool is_recorder(const StackFrame& frame) {
    for (const char* prefix :
        {"torch::unwind", "torch::CapturedTraceback", "torch::cuda::", "c10::cuda::CUDACachingAllocator"})
        if (frame.function.starts_with(prefix)) return true;
    return false;
}

}  // namespace

const StackFrame* program_frame(const Trace& trace, StackId stack) {
    if (!stack) return nullptr;
    const StackFrame *python = nullptr, *innermost = nullptr;
    for (std::uint32_t i = trace.stack_begin[stack.value]; i < trace.stack_begin[stack.value + 1]; ++i) {
        const StackFrame& frame = trace.frames[trace.stack_frames[i]];
        if (is_python(frame) && !is_installed(frame)) return &frame;
        if (!python && is_python(frame)) python = &frame;
        if (!innermost && !is_recorder(frame)) innermost = &frame;
    }
    return python ? python : innermost;
}

std::string call_site(const Trace& trace, StackId stack) {
    const StackFrame* frame = program_frame(trace, stack);
    if (!frame) return "";
    const std::string file = frame->file.substr(frame->file.rfind('/') + 1);
    if (file.empty() || file == "??") return frame->function;
    if (frame->line == 0) return fmt::format("{} {}", file, frame->function);
    return fmt::format("{}:{} {}", file, frame->line, frame->function);
}

}  // namespace fragsim
