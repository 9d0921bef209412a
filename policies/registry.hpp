// The policies fragsim knows: every entry of policies.def.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/policy/policy.hpp"

namespace fragsim {

const std::vector<PolicyInfo>& policies();

// The policy and parameters that a PYTORCH_CUDA_ALLOC_CONF string chooses. `warnings` gets what PyTorch reads
// differently than it looks. `torch_version` ("": the default) decides which keys there are. Throws Error(usage) where
// PyTorch refuses the string, and for settings that no policy here models.
PolicySpec policy_from_alloc_conf(
    std::string_view text, std::vector<std::string>& warnings, std::string_view torch_version = {});

// The same; none where PyTorch refuses the string.
std::optional<PolicySpec> try_alloc_conf(std::string_view text, std::string_view torch_version);

}  // namespace fragsim
