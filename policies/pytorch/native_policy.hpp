// What the entries of the native allocator share.
#pragma once

#include "lib/policy/policy.hpp"

namespace fragsim::pytorch {

// All but name and summary.
PolicyInfo native_policy();

}  // namespace fragsim::pytorch
