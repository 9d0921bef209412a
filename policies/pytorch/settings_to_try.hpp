// What people set in PYTORCH_CUDA_ALLOC_CONF against running out of memory.
#pragma once

#include <string>
#include <vector>

namespace fragsim::pytorch {

// PyTorch's default first. `limited`: there is a memory limit, so that garbage collection has something to work
// against. `private_pools`: there are graphs or MemPools, which backend:cudaMallocAsync is not modelled with.
std::vector<std::string> settings_to_try(bool limited, bool private_pools);

// The values of max_split_size_mb that everybody tries.
inline constexpr int kFolklore[] = {32, 64, 128, 256, 512};

}  // namespace fragsim::pytorch
