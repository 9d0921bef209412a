// What ends a command: one exception type, caught once, in main. What the simulation is about (out of memory, a
// failed check) is a value and never an Error.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace fragsim {

enum class ErrorCode { usage, input, environment, internal };

class Error : public std::runtime_error {
public:
    // `message` names file, position and value; `hint` says what to do about it (may be empty). Lower case, no full
    // stop.
    Error(ErrorCode code, const std::string& message, std::string hint = {})
        : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

    ErrorCode code() const { return code_; }
    const std::string& hint() const { return hint_; }

private:
    ErrorCode code_;
    std::string hint_;
};

[[noreturn]] void fail_assertion(const char* condition, const char* file, int line);

}  // namespace fragsim

// A broken invariant: a bug in fragsim, never the input's fault.
#define FRAGSIM_ASSERT(condition) \
    (static_cast<bool>(condition) ? void() : ::fragsim::fail_assertion(#condition, __FILE__, __LINE__))
