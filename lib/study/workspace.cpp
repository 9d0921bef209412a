#include "lib/study/workspace.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace fragsim {
namespace {

// A convolution allocates its result, then the workspace, and frees that before anything else happens: one op. A tensor
// of the program may be as short-lived, so without a stack little more is allowed.
constexpr std::uint32_t kOpsAlone = 3, kOpsInLibrary = 8;

// As functions and files of cuDNN, cuBLAS and their counterparts on AMD are called, and PyTorch's own around them.
constexpr std::string_view kLibraries[] = {"cudnn", "cublas", "miopen", "hipblas", "rocblas", "convolution",
    "conv_forward", "conv1d", "conv2d", "conv3d", "conv_transpose", "gemm"};

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

// Ops until the program lets go; none: not within `most`.
std::optional<std::uint32_t> ops_until_free(const Trace& trace, std::uint32_t alloc, std::uint32_t most) {
    const std::uint32_t buffer = trace.events[alloc].subject;
    std::uint32_t ops = 1;
    for (std::size_t i = alloc + std::size_t{1}; i < trace.events.size() && ops <= most; ++i) {
        const Event event = trace.events[i];
        const bool frees = event.kind() == EventKind::free || event.kind() == EventKind::free_requested;
        if (frees && event.subject == buffer) return ops;
        ops += is_op(event.kind());
    }
    return {};
}

std::string library_in(const StackFrame& frame) {
    const std::string function = lower(frame.function);
    for (const std::string_view library : kLibraries)
        if (function.find(library) != std::string::npos) return frame.function;
    return "";
}

struct Caller {
    std::string library;  // "": none is named
    bool native = false;  // the stack has C++ frames, so that a library would be among them
};

// Of Python's frames only the innermost says who allocates.
Caller caller_of(const Trace& trace, StackId stack) {
    Caller caller;
    if (!stack) return caller;
    const std::uint32_t begin = trace.stack_begin[stack.value], end = trace.stack_begin[stack.value + 1];
    for (std::uint32_t i = begin; i < end && caller.library.empty(); ++i) {
        const StackFrame& frame = trace.frames[trace.stack_frames[i]];
        if (frame.function.find("::") == std::string::npos) continue;
        caller.native = true;
        caller.library = library_in(frame);
    }
    if (!caller.native && begin < end) caller.library = library_in(trace.frames[trace.stack_frames[begin]]);
    return caller;
}

}  // namespace

std::optional<Workspace> workspace_at(const Trace& trace, std::uint32_t alloc) {
    const Caller caller = caller_of(trace, trace.buffers[trace.events[alloc].subject].stack);
    if (caller.native && caller.library.empty()) return {};
    const auto ops = ops_until_free(trace, alloc, caller.library.empty() ? kOpsAlone : kOpsInLibrary);
    if (!ops) return {};
    return Workspace{*ops, caller.library};
}

}  // namespace fragsim
