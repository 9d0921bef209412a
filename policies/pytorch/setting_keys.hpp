// The keys of PYTORCH_CUDA_ALLOC_CONF that decide where blocks go, for a search of the best.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/policy/setting_key.hpp"

namespace fragsim::pytorch {

// `torch_version`: "" is the default one. `limited`: every trace has a memory limit, so that garbage_collection_threshold
// has something to be a part of; else the key is left out. `memory_limit`: theirs, if it is the same. `largest`: bytes;
// sizes above it do not occur. Left out are keys that are limits, not tuning (per_process_memory_fraction,
// throw_on_cudamalloc_oom), and those that act elsewhere (pinned_*, ...). expandable_segments and backend are not here
// either: they choose another allocator .
std::vector<SettingKey> setting_keys(
    std::string_view torch_version, bool limited, std::optional<Bytes> memory_limit, Bytes largest);

// One entry for each of `keys`: an index into its values. Source of the list syntax: spec/pytorch-caching-allocator.md,
// section 13.
std::string alloc_conf_of(const std::vector<SettingKey>& keys, const std::vector<std::int64_t>& point, bool expandable);

}  // namespace fragsim::pytorch
