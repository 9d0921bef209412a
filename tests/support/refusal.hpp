// What a call that must throw an Error says.
#pragma once

#include <string>

#include "lib/core/error.hpp"
#include "tests/support/catch.hpp"

namespace fragsim::test {

struct Refusal {
    ErrorCode code = ErrorCode::internal;
    std::string message, hint;

    bool says(const std::string& text) const { return message.find(text) != std::string::npos; }
    bool hints(const std::string& text) const { return hint.find(text) != std::string::npos; }
};

// Fails the test when nothing is thrown.
template <class Call>
Refusal refusal(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        return {error.code(), error.what(), error.hint()};
    }
    FAIL_CHECK("nothing was refused");
    return {};
}

}  // namespace fragsim::test
