// What the program answers to a command line: JSON, or a refusal of wrong usage.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

namespace fragsim::test {

// The document that the command prints with --json, which is added where it is missing.
inline nlohmann::json run_json(std::vector<std::string> arguments) {
    if (std::find(arguments.begin(), arguments.end(), "--json") == arguments.end()) arguments.emplace_back("--json");
    const Ended ended = fragsim(arguments);
    INFO(ended.err);
    REQUIRE(ended.status == 0);
    return nlohmann::json::parse(ended.out);
}

// Refused as wrong usage, with a message that has `message` in it, and a hint.
inline void check_usage(const std::vector<std::string>& arguments, const std::string& message) {
    const Ended ended = fragsim(arguments);
    CHECK(ended.status == 2);
    CHECK(ended.out == "");
    INFO(ended.err);
    CHECK(ended.err.find(message) != std::string::npos);
    CHECK(ended.err.find("hint: ") != std::string::npos);
}

}  // namespace fragsim::test
