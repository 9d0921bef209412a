// What matters of a PYTORCH_ALLOC_CONF string beside what it does.
#pragma once

#include <string_view>

#include "lib/policy/setting_traits.hpp"

namespace fragsim::pytorch {

// `torch_version`: "" is the default one. Throws Error(usage) where that version refuses the string.
SettingTraits setting_traits(std::string_view alloc_conf, std::string_view torch_version);

}  // namespace fragsim::pytorch
