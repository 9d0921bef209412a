// What advice to a PyTorch program depends on, and the environment variable that its allocator settings go into.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fragsim {

struct TorchProgram {
    std::string version;   // whose rules apply: "2.12", or words that begin with one; "": the default version's
    bool hip = false;      // PyTorch for AMD's GPUs
    bool assumed = false;  // nothing says that the program is PyTorch's
};

// Every variable that this PyTorch reads its allocator settings from, the one to use first.
// Source: c10/cuda/CUDAAllocatorConfig.h, c10/core/AllocatorConfig.cpp (PyTorch 2.8, 2.9, 2.15). PYTORCH_ALLOC_CONF is
// there from 2.9 on, which reads PYTORCH_CUDA_ALLOC_CONF first and calls it deprecated; builds for HIP read
// PYTORCH_HIP_ALLOC_CONF, too.
std::vector<std::string_view> alloc_conf_variables(const TorchProgram& program);
std::string_view alloc_conf_variable(const TorchProgram& program = {});  // the one to use

}  // namespace fragsim
