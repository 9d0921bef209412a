// A GPU modelled on the host: a capacity, and addresses as cudaMalloc gives them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lib/device/async_pool_model.hpp"
#include "lib/device/cuda_malloc_addresses.hpp"
#include "lib/device/device.hpp"

namespace fragsim {

class HostDevice final : public Device {
public:
    struct Config {
        std::optional<Bytes> capacity;  // physical memory there is for this process; none: no bound
        CudaMallocAddresses addresses{CudaMallocAddresses::Start::fresh};  // the process' address space at the start
    };
    explicit HostDevice(Config config) : capacity_(config.capacity), addresses_(std::move(config.addresses)) {}

    // Refuses when the physical memory (whole 2 MiB pages) would exceed the capacity. The capacity is the only reason:
    // no physical fragmentation was seen on a real card (spec/measured-h200.md, section 2).
    std::optional<Address> malloc(Bytes bytes, StreamId) override {
        if (!has_room(addresses_.physical_cost(bytes))) return {};
        return addresses_.malloc(bytes);
    }
    void free(Address address, Bytes bytes, StreamId) override { addresses_.free(address, bytes); }

    // As cuMemAddressReserve places ranges: one behind the other, upwards. Small ones find room in what the context left
    // (8 MiB did, 16 did not: H200, driver 580.159.04) and so lie above all others.
    Address reserve(Bytes bytes, StreamId) override {
        Address& next = bytes < 16 * kMiB ? next_small_range_ : next_range_;
        const Address address = next;
        next += static_cast<Address>(round_up(bytes, 32 * kMiB));
        return address;
    }
    void unreserve(Address, Bytes, StreamId) override {}
    bool map(Address, Bytes bytes, Bytes, StreamId) override {
        if (!has_room(bytes)) return false;
        mapped_bytes_ += bytes;
        return true;
    }
    void unmap(Address, Bytes bytes, Bytes, StreamId) override { mapped_bytes_ -= bytes; }
    void move(Address, Address, Bytes, StreamId) override {}
    void alias(Address, Address, Bytes, Bytes, StreamId) override {}
    void unalias(Address, Bytes, Bytes, StreamId) override {}

    std::unique_ptr<StreamOrderedPool> create_pool(const PoolProperties& properties) override {
        const AsyncPoolModel::Memory memory{[this](Bytes bytes) { return map(0, bytes, AsyncPoolModel::kChunk, {}); },
            [this](Bytes bytes) { unmap(0, bytes, AsyncPoolModel::kChunk, {}); }};
        const Address base = next_range_;
        next_range_ += Address{1} << 45;
        return std::make_unique<AsyncPoolModel>(properties, base, memory);
    }

    Bytes total_memory() const override { return std::max(capacity_.value_or(0), kDefaultTotalMemory); }

    // Segments that exist when the history begins.
    void adopt(std::vector<CudaMallocAddresses::Range> segments) { addresses_.adopt(std::move(segments)); }
    void adopt_mapped(Address end, Bytes bytes) {
        mapped_bytes_ += bytes;
        next_range_ =
            std::max(next_range_, static_cast<Address>(round_up(static_cast<Bytes>(end), kGiB)) + (Address{1} << 40));
    }

private:
    bool has_room(Bytes bytes) const {
        return !capacity_ || bytes <= *capacity_ - addresses_.physical_bytes() - mapped_bytes_;
    }

    std::optional<Bytes> capacity_;
    CudaMallocAddresses addresses_;
    Address next_range_ = 0x302000000;  // where the first range was seen
    Address next_small_range_ = CudaMallocAddresses::kTop + Address{128} * kGiB;
    Bytes mapped_bytes_ = 0;
};

}  // namespace fragsim
