// What `replay` and `compare` have in common: everything but their help and their default report.
#pragma once

#include "apps/fragsim/cli.hpp"

namespace fragsim {

// `logs`: offers --driver-log and --timeline, which take one trace and one policy.
void add_replaying_command(CLI::App& command, Invocation& invocation, const char* default_report, bool logs);

}  // namespace fragsim
