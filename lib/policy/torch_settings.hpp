// Settings of PyTorch's allocator as its snapshots export them (spec/pytorch-snapshot-format.md, section 6).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "lib/core/types.hpp"

namespace fragsim {

struct TorchSettings {
    std::string alloc_conf;     // PYTORCH_CUDA_ALLOC_CONF
    Bytes max_split_size = -1;  // -1: unlimited
    double garbage_collection_threshold = 0;
    bool expandable_segments = false;
    std::array<std::uint64_t, 16> roundup_power2_divisions{};  // entry k: for sizes from 2^k MiB on
};

}  // namespace fragsim
