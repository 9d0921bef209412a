// A device with a memory of what it was asked: every call that succeeded, when, and what it would have cost.
#pragma once

#include <vector>

#include "lib/device/cost_model.hpp"
#include "lib/device/device.hpp"

namespace fragsim {

struct DriverCall {
    std::uint32_t op;  // the op during which it was made
    DriverCallKind kind;
    StreamId stream;
    Bytes bytes;
    Address address;
};

class LoggedDevice final : public Device {
public:
    // Both must outlive this. A refused call costs as much as one that succeeds.
    LoggedDevice(Device& device, const CostModel& costs) : device_(device), costs_(costs) {}

    std::optional<Address> malloc(Bytes bytes, StreamId stream) override;
    void free(Address address, Bytes bytes, StreamId stream) override;
    Address reserve(Bytes bytes, StreamId stream) override;
    void unreserve(Address address, Bytes bytes, StreamId stream) override;
    bool map(Address address, Bytes bytes, Bytes page, StreamId stream) override;
    void unmap(Address address, Bytes bytes, Bytes page, StreamId stream) override;
    Bytes total_memory() const override { return device_.total_memory(); }

    // The engine says which op comes next.
    void begin_op(std::uint32_t op) { op_ = op; }

    const std::vector<DriverCall>& calls() const { return calls_; }
    std::int64_t refused() const { return refused_; }
    double modelled_ns() const { return modelled_ns_; }  // all calls so far

private:
    void log(DriverCallKind kind, Address address, Bytes bytes, StreamId stream) {
        calls_.push_back({op_, kind, stream, bytes, address});
    }

    Device& device_;
    const CostModel& costs_;
    std::uint32_t op_ = 0;
    std::vector<DriverCall> calls_;
    std::int64_t live_ = 0, refused_ = 0;
    double modelled_ns_ = 0;
};

}  // namespace fragsim
