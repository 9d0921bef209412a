// A GPU modelled on the host: a capacity, and addresses as cudaMalloc gives them.
#pragma once

#include <cstdint>

#include "lib/device/cuda_malloc_addresses.hpp"
#include "lib/device/device.hpp"

namespace fragsim {

class HostDevice final : public Device {
public:
    struct Config {
        std::optional<Bytes> capacity;  // physical memory there is for this process; none: no bound
        CudaMallocAddresses::Start start = CudaMallocAddresses::Start::fresh;
    };
    explicit HostDevice(const Config& config) : capacity_(config.capacity), addresses_(config.start) {}

    // Refuses when the physical memory (whole 2 MiB pages) would exceed the capacity. The capacity is the only reason:
    // no physical fragmentation was seen on a real card (spec/measured-h200.md, section 2).
    std::optional<Address> malloc(Bytes bytes, StreamId) override {
        if (capacity_ && addresses_.physical_bytes() + addresses_.physical_cost(bytes) > *capacity_) return {};
        return addresses_.malloc(bytes);
    }
    void free(Address address, Bytes bytes, StreamId) override { addresses_.free(address, bytes); }

    // Segments that exist when the history begins.
    void adopt(std::vector<CudaMallocAddresses::Range> segments) { addresses_.adopt(std::move(segments)); }

private:
    std::optional<Bytes> capacity_;
    CudaMallocAddresses addresses_;
};

}  // namespace fragsim
