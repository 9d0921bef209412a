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
    float modelled_ns;  // what it costs; the chunks that a call of a pool maps are its first entries and have its price
    Bytes bytes;
    Address address;
    Address source = 0;  // alias: the first address of the memory
};

// Does the call take physical memory from the device, or give it back? The others use what is there.
constexpr bool takes_memory(DriverCallKind kind) {
    return kind == DriverCallKind::malloc || kind == DriverCallKind::map;
}
constexpr bool gives_memory(DriverCallKind kind) {
    return kind == DriverCallKind::free || kind == DriverCallKind::unmap;
}

class LoggedDevice final : public Device {
public:
    enum class Timing { modelled, measured };

    // Both must outlive this. A refused call costs as much as one that succeeds. `measured`: the calls are timed, too.
    LoggedDevice(Device& device, const CostModel& costs, Timing timing = Timing::modelled)
        : device_(device), costs_(costs), timing_(timing) {}

    std::optional<Address> malloc(Bytes bytes, StreamId stream) override;
    void free(Address address, Bytes bytes, StreamId stream) override;
    Address reserve(Bytes bytes, StreamId stream) override;
    void unreserve(Address address, Bytes bytes, StreamId stream) override;
    bool map(Address address, Bytes bytes, Bytes page, StreamId stream) override;
    void unmap(Address address, Bytes bytes, Bytes page, StreamId stream) override;
    // Logged as an unmap and a map.
    void move(Address from, Address to, Bytes page, StreamId stream) override;
    void alias(Address from, Address to, Bytes bytes, Bytes page, StreamId stream) override;
    void unalias(Address to, Bytes bytes, Bytes page, StreamId stream) override;
    void record(StreamId stream) override;
    void wait(StreamId waiter, StreamId on) override;
    void synchronize(std::optional<StreamId> stream) override;
    // What a pool does is logged, too: its calls, and before each the chunks that it maps and unmaps.
    std::unique_ptr<StreamOrderedPool> create_pool(const PoolProperties& properties) override;
    Bytes total_memory() const override { return device_.total_memory(); }

    // The engine says which op comes next.
    void begin_op(std::uint32_t op) { op_ = op; }

    const std::vector<DriverCall>& calls() const { return calls_; }
    std::int64_t refused() const { return refused_; }
    // Calls, refused ones included, that were about address space or memory of the device; an allocation or a free of a
    // stream-ordered pool that has the memory is none.
    std::int64_t backing_calls() const { return backing_calls_; }
    std::int64_t waits() const { return waits_; }                        // of a stream for another
    std::int64_t synchronizations() const { return synchronizations_; }  // of the host
    double modelled_ns() const { return modelled_ns_; }                  // all calls so far
    std::int64_t measured_ns() const { return measured_ns_; }            // likewise; 0 when calls are not timed

    // Each call, the refused ones included, when calls are timed.
    struct CallTime {
        DriverCallKind kind;
        double modelled_ns;
        std::int64_t measured_ns;
    };
    const std::vector<CallTime>& call_times() const { return call_times_; }

private:
    class LoggedPool;

    // Makes a call of the device that the model says costs `modelled_ns`.
    template <class Call>
    auto timed(DriverCallKind kind, double modelled_ns, Call call);
    void add_time(DriverCallKind kind, double modelled_ns, std::int64_t start_ns);
    std::int64_t clock_ns() const;  // 0 when calls are not timed
    void log(DriverCallKind kind, Address address, Bytes bytes, StreamId stream, Address source = 0) {
        calls_.push_back({op_, kind, stream, static_cast<float>(price_ns_), bytes, address, source});
        price_ns_ = 0;
    }
    void refuse() {
        price_ns_ = 0;
        ++refused_;
        ++backing_calls_;
    }

    Device& device_;
    const CostModel& costs_;
    Timing timing_;
    std::uint32_t op_ = 0;
    std::vector<DriverCall> calls_;
    std::int64_t live_ = 0, refused_ = 0, backing_calls_ = 0, waits_ = 0, synchronizations_ = 0;
    double modelled_ns_ = 0;
    double price_ns_ = 0;  // of what was called since the last entry
    std::int64_t measured_ns_ = 0;
    std::vector<CallTime> call_times_;
};

}  // namespace fragsim
