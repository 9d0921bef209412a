// PyTorch's native allocator once more, written from spec/pytorch-caching-allocator.md to be obviously right and as
// slow as that makes it: one map of blocks, every search a scan, every statistic recounted from the whole memory after
// every step. It shares no code with policies/pytorch and serves as the oracle for it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/policy/policy.hpp"

namespace fragsim::test {

struct ReferenceSettings {
    Bytes max_split = -1;  // -1: none
    Bytes slack = 20 * kMiB, large_segment = 20 * kMiB;
    double gc_threshold = 0;
    std::array<Bytes, 16> divisions{};
    double fraction = 1;
    bool rejects = false;    // throw_on_cudamalloc_oom
    bool by_serial = false;  // from 2.13 on
    Limits limits;
};

std::unique_ptr<Policy> reference_allocator(const ReferenceSettings& settings, Device& device);

}  // namespace fragsim::test
