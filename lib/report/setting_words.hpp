// How reports speak of settings of PyTorch's allocator.
#pragma once

#include <cstdint>
#include <string>

#include "lib/study/explain.hpp"

namespace fragsim {

std::string setting_label(const std::string& alloc_conf);  // itself, or "PyTorch's default"
std::string setting_label(const Setting& setting);         // that, or the policy where it is none of PyTorch's
// "export PYTORCH_CUDA_ALLOC_CONF=..."; for PyTorch's default, the line that goes back to it.
std::string setting_line(const std::string& alloc_conf);
// What has to be said with some settings; "" for most. A sentence.
std::string setting_condition(const std::string& alloc_conf);
std::string outcome_words(std::int64_t ooms);  // "fits", "3 OOM"

}  // namespace fragsim
