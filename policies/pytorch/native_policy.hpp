// What the entries of the native allocator share.
#pragma once

#include "lib/policy/policy.hpp"

namespace fragsim::pytorch {

// All but name and summary. `fixed`: settings that belong to the policy.
PolicyInfo native_policy(Parameters fixed = {});

}  // namespace fragsim::pytorch
