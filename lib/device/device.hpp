// What an allocator can see of a GPU. A policy is written against this once and runs on the host model, on a recording
// played back, or on the real thing.
#pragma once

#include <optional>

#include "lib/core/types.hpp"

namespace fragsim {

class Device {
public:
    virtual ~Device() = default;

    // `stream` is the stream on whose behalf the policy asks; the driver does not look at it, logs do.

    // Device memory as cudaMalloc gives it; none when the device refuses (out of memory). `bytes` > 0.
    virtual std::optional<Address> malloc(Bytes bytes, StreamId stream) = 0;
    // Gives back what malloc(bytes) returned.
    virtual void free(Address address, Bytes bytes, StreamId stream) = 0;

    // Address space without memory, as cuMemAddressReserve gives it; it does not run out. unreserve: nothing is mapped
    // in it.
    virtual Address reserve(Bytes bytes, StreamId stream) = 0;
    virtual void unreserve(Address address, Bytes bytes, StreamId stream) = 0;
    // Puts memory in pages of `page` bytes under [address, address + bytes) of a reserved range, all or nothing. False:
    // out of memory. `bytes` is a multiple of `page`.
    virtual bool map(Address address, Bytes bytes, Bytes page, StreamId stream) = 0;
    virtual void unmap(Address address, Bytes bytes, Bytes page, StreamId stream) = 0;

    // Physical memory of the whole card; allocators size address ranges by it.
    virtual Bytes total_memory() const { return kDefaultTotalMemory; }
    static constexpr Bytes kDefaultTotalMemory = 150'109'880'320;  // an H200's cudaDeviceProp.totalGlobalMem
};

}  // namespace fragsim
