#include "traces/pytorch_release_stack.hpp"

namespace fragsim {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

ReleaseStacks::Named ReleaseStacks::named(std::uint32_t stack) {
    if (stack == kNoStack) return Named::nobody;
    if (named_.empty()) named_.resize(records_.stacks.size());
    if (named_[stack] == Named::unread) named_[stack] = read(stack);
    return named_[stack];
}

// Innermost first; the first frame that names either decides. Of Python only the innermost frame counts: a program may
// call its own functions what it likes.
ReleaseStacks::Named ReleaseStacks::read(std::uint32_t stack) const {
    for (const std::uint32_t number : records_.stack(stack)) {
        const FrameRecord frame = records_.frame(number);
        const std::string_view function = records_.string(frame.function), file = records_.string(frame.file);
        if (file.ends_with(".py")) {
            const std::string_view name = file.substr(file.find_last_of("/\\") + 1);
            return function == "empty_cache" && name == "memory.py" ? Named::empty_cache : Named::nobody;
        }
        if (contains(function, "emptyCache")) return Named::empty_cache;
        if (contains(function, "::malloc") || (contains(function, "CachingAllocator") &&
                                                  (contains(function, "malloc") || contains(function, "allocate"))))
            return Named::malloc;
    }
    return Named::nobody;
}

}  // namespace fragsim
