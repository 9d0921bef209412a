// A device whose addresses say nothing: ranges are handed out upwards, each begins at a multiple of 1 GiB, no two are
// adjacent and none is used again. So a policy and its reference agree on every comparison of addresses, and a place
// can be told as "which range, how far into it".
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "lib/device/async_pool_model.hpp"
#include "lib/device/device.hpp"

namespace fragsim::test {

class UpwardDevice final : public Device {
public:
    // `capacity`: physical memory; none: no bound. Whole 2 MiB pages count, and no call shares its pages.
    explicit UpwardDevice(std::optional<Bytes> capacity = {}, Bytes total = kDefaultTotalMemory)
        : capacity_(capacity), total_(total) {}

    std::optional<Address> malloc(Bytes bytes, StreamId) override {
        if (!take(round_up(bytes, 2 * kMiB))) return {};
        untouched_ = false;
        return add_range(bytes);
    }
    void free(Address, Bytes bytes, StreamId) override { used_ -= round_up(bytes, 2 * kMiB); }
    Address reserve(Bytes bytes, StreamId) override {
        untouched_ = true;
        return add_range(bytes);
    }
    // A latest range that never had memory is not counted, so that policies may try and give up as they like.
    void unreserve(Address address, Bytes, StreamId) override {
        if (address != starts_.back() || !untouched_) return;
        untouched_ = false;
        next_ = address;
        starts_.pop_back();
    }
    bool map(Address address, Bytes bytes, Bytes page, StreamId) override {
        FRAGSIM_ASSERT(bytes % page == 0);
        if (!take(bytes)) return false;
        touch(address);
        return true;
    }
    void unmap(Address, Bytes bytes, Bytes, StreamId) override { used_ -= bytes; }
    void move(Address, Address to, Bytes, StreamId) override { touch(to); }
    void alias(Address, Address to, Bytes, Bytes, StreamId) override { touch(to); }
    void unalias(Address, Bytes, Bytes, StreamId) override {}
    std::unique_ptr<StreamOrderedPool> create_pool(const PoolProperties& properties) override {
        const AsyncPoolModel::Memory memory{
            [this](Bytes bytes) { return take(bytes); }, [this](Bytes bytes) { used_ -= bytes; }};
        return std::make_unique<AsyncPoolModel>(properties, add_range(Bytes{1} << 45), memory);
    }
    Bytes total_memory() const override { return total_; }

    // The number of the range and the offset in it: "2+512".
    std::string place(
        Address address, std::string (*text)(Bytes) = [](Bytes n) { return std::to_string(n); }) const {
        const auto after = std::upper_bound(starts_.begin(), starts_.end(), address);
        if (after == starts_.begin()) return "nowhere";
        return fmt::format("{}+{}", after - starts_.begin() - 1, text(static_cast<Bytes>(address - *(after - 1))));
    }

private:
    void touch(Address address) {
        if (address >= starts_.back()) untouched_ = false;
    }
    bool take(Bytes bytes) {
        if (capacity_ && used_ + bytes > *capacity_) return false;
        used_ += bytes;
        return true;
    }
    Address add_range(Bytes bytes) {
        starts_.push_back(next_);
        next_ = static_cast<Address>(round_up(static_cast<Bytes>(next_) + bytes + kGiB, kGiB));
        return starts_.back();
    }

    std::optional<Bytes> capacity_;
    Bytes total_;
    Bytes used_ = 0;
    Address next_ = 16 * kGiB;
    std::vector<Address> starts_;
    bool untouched_ = false;  // the latest range was reserved and nothing has been put in it
};

}  // namespace fragsim::test
