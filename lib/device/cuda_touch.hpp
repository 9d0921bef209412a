// Touching memory on the GPU, by kernels on the stream of the buffer: a pattern of its own is written into each buffer,
// and looked for again before the buffer is freed. Two live buffers that share memory spoil each other's pattern.
#pragma once

#include "lib/device/cuda_driver.hpp"

namespace fragsim::cuda {

class Touch {
public:
    struct Spoilt {
        std::uint64_t words = 0;          // that did not hold what was written
        std::uint32_t first_pattern = 0;  // whose buffer the first of them was in
    };

    // On the current context. Throws Error(environment) if the kernels cannot be loaded.
    Touch();
    ~Touch();
    Touch(const Touch&) = delete;
    Touch& operator=(const Touch&) = delete;

    // `bytes` is a multiple of 4. Both return at once.
    void fill(DevicePointer address, Bytes bytes, std::uint32_t pattern, Stream stream) const;
    void check(DevicePointer address, Bytes bytes, std::uint32_t pattern, Stream stream) const;

    // What the checks have found so far; waits for the whole device.
    Spoilt spoilt() const;

private:
    void launch(Function kernel, DevicePointer address, Bytes bytes, std::uint32_t pattern, Stream stream) const;

    const Driver& driver_;
    Module module_ = nullptr;
    Function fill_ = nullptr, check_ = nullptr;
    // What the checks write to lies in host memory, so that addresses on the device are those of a run without checks.
    volatile Spoilt* found_ = nullptr;
    DevicePointer found_on_device_ = 0;
};

}  // namespace fragsim::cuda
