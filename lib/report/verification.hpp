// What `verify` prints.
#pragma once

#include <string>
#include <vector>

#include "lib/replay/verify.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

// One file and how far each of its traces was reproduced, by the policy named.
struct Verification {
    const Recording* recording;
    std::string policy;
    std::vector<VerifyResult> results;  // of the traces that were verified
};

std::string verification_text(const Verification& verification);
std::string verification_json(
    const std::vector<Verification>& all, const std::string& tool_version, const std::vector<std::string>& argv);

}  // namespace fragsim
