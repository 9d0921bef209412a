// `compare` with stored results instead of traces.
#pragma once

#include "apps/fragsim/cli.hpp"

namespace fragsim {

// The exit status, when the files are results that fragsim wrote; none when they are traces. `fail`: status 1 when
// something got worse. Throws Error(usage) for a mixture, and for `replaying`: options given that only a replay has.
std::optional<int> compare_stored(
    const ReplayChoice& replay, const std::vector<std::string>& replaying, bool fail, const Invocation& invocation);

}  // namespace fragsim
