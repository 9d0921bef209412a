// What people set in PYTORCH_CUDA_ALLOC_CONF against running out of memory.
#pragma once

#include <string>
#include <vector>

namespace fragsim::pytorch {

// PyTorch's default first. `limited`: there is a memory limit, so that garbage collection has something to work
// against.
std::vector<std::string> settings_to_try(bool limited);

}  // namespace fragsim::pytorch
