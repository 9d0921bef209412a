// What an allocator can see of a GPU. A policy is written against this once and runs on the host model, on a recording
// played back, or on the real thing.
#pragma once

#include <optional>

#include "lib/core/types.hpp"

namespace fragsim {

class Device {
public:
    virtual ~Device() = default;

    // Device memory as cudaMalloc gives it; none when the device refuses (out of memory). `bytes` > 0. `stream` is the
    // stream on whose behalf the policy asks; the driver does not look at it, logs do.
    virtual std::optional<Address> malloc(Bytes bytes, StreamId stream) = 0;

    // Gives back what malloc(bytes) returned.
    virtual void free(Address address, Bytes bytes, StreamId stream) = 0;
};

}  // namespace fragsim
