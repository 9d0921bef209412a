// What a pasted out-of-memory message tells, in sentences and for programs.
#pragma once

#include <string>
#include <vector>

#include "lib/study/message_verdict.hpp"

namespace fragsim {

std::string message_text(const OomMessage& message, const MessageVerdict& verdict);
std::string message_json(const OomMessage& message, const MessageVerdict& verdict, const std::string& tool_version,
    const std::vector<std::string>& argv);

}  // namespace fragsim
