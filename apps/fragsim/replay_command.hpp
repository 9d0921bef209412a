// What `replay` and `compare` have in common: everything but their help and their default report.
#pragma once

#include "apps/fragsim/cli.hpp"

namespace fragsim {

// `logs`: offers --driver-log and --timeline, which take one trace and one policy; without them, a policy that has to
// assume what nobody recorded is shown at both ends where they differ.
void add_replaying_command(CLI::App& command, Invocation& invocation, const char* default_report, bool logs);

}  // namespace fragsim
