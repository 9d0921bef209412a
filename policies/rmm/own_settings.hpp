// What users of RAPIDS' memory manager can set: its memory resources.
#pragma once

#include <optional>
#include <vector>

#include "lib/policy/policy.hpp"

namespace fragsim::rmm {

// For every policy of RMM's.
std::vector<OwnSetting> own_settings(std::optional<Bytes> capacity);

}  // namespace fragsim::rmm
