// What an allocator can see of a GPU. A policy is written against this once and runs on the host model, on a recording
// played back, or on the real thing. A recording played back offers what PyTorch's native allocator asks for: malloc
// and free, reserve, map and unmap.
#pragma once

#include <memory>
#include <optional>

#include "lib/core/error.hpp"
#include "lib/core/types.hpp"
#include "lib/device/stream_ordered_pool.hpp"

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
    // Takes the memory of the page at `from` away from there and puts it at `to`, which has none: cuMemUnmap and
    // cuMemMap of one handle.
    virtual void move(Address /*from*/, Address /*to*/, Bytes /*page*/, StreamId) { FRAGSIM_ASSERT(!"no remapping"); }
    // Puts the memory mapped at `from` at `to` as well, in a reserved range of its own: one memory, two addresses.
    // unalias takes the second address away again; the pages must not be unmapped before.
    virtual void alias(Address /*from*/, Address /*to*/, Bytes, Bytes /*page*/, StreamId) {
        FRAGSIM_ASSERT(!"no remapping");
    }
    virtual void unalias(Address /*to*/, Bytes, Bytes /*page*/, StreamId) { FRAGSIM_ASSERT(!"no remapping"); }

    // Order among streams. record marks what `stream` has been given so far (cudaEventRecord); wait lets the future
    // work of `waiter` wait for the last mark of `on` (cudaStreamWaitEvent). synchronize: the host waits for a stream,
    // or for all of them. Where streams have no work of their own, these do nothing.
    virtual void record(StreamId) {}
    virtual void wait(StreamId /*waiter*/, StreamId /*on*/) {}
    virtual void synchronize(std::optional<StreamId>) {}

    // The driver's own stream-ordered allocator, as cudaMemPoolCreate gives it. It lives no longer than the device.
    virtual std::unique_ptr<StreamOrderedPool> create_pool(const PoolProperties&) {
        FRAGSIM_ASSERT(!"no stream-ordered pools");
        return nullptr;
    }

    // Physical memory of the whole card; allocators size address ranges by it.
    virtual Bytes total_memory() const { return kDefaultTotalMemory; }
    static constexpr Bytes kDefaultTotalMemory = 150'109'880'320;  // an H200's cudaDeviceProp.totalGlobalMem
};

}  // namespace fragsim
