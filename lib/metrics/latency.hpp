// What operations cost in time, measured: each op, apart for hits, growths and retries, with the driver's part and the
// policy's own; and each kind of driver call beside what the cost model says of it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lib/replay/replay.hpp"

namespace fragsim {

// Nanoseconds; percentiles by nearest rank over all values, no sampling. count 0: the others mean nothing.
struct LatencySummary {
    std::int64_t count = 0, min = 0, p50 = 0, p90 = 0, p99 = 0, p999 = 0, max = 0, total = 0;
};
LatencySummary summarize(std::vector<std::int64_t> values);

// How an operation was served.
enum class OpClass : std::uint8_t {
    alloc_hit,     // from memory that was there
    alloc_growth,  // with memory from the device
    alloc_retry,   // after memory was given back, or refused
    free_kept,     // the memory stays with the policy
    free_released,
    other,  // empty_cache, synchronize, ...
};
inline constexpr std::size_t kOpClasses = 6;
const char* name(OpClass op_class);

struct LatencyReport {
    struct Op {
        LatencySummary all, own;  // own: without the driver
    };
    struct Call {
        DriverCallKind kind;
        LatencySummary measured;
        double modelled_ns;  // of all of them, by the cost model
    };
    std::array<Op, kOpClasses> ops;
    std::vector<Call> calls;  // of the kinds that were made
    // Of each repetition: sums over all ops.
    std::vector<std::int64_t> repetition_ns, repetition_own_ns;
    std::int64_t driver_ns = 0;  // measured, all repetitions
    double modelled_driver_ns = 0;
    std::int64_t clock_ns = 0;  // what measuring itself adds to an op, about

    // The sum of the even repetitions against that of the odd ones, as a ratio - 1: what two runs of the same thing
    // differ by. 0 with fewer than two.
    double a_a_noise() const;
};

// Collects a replay's latencies; the first observer of the list, so that the others' work is not counted. Several
// replays may follow each other.
class LatencyMeter final : public ReplayObserver {
public:
    // A new replay, on this device. `ops`: about how many follow.
    void begin(const LoggedDevice& device, const AllocatorStats& stats, std::size_t ops);
    void before(const Step& step) override;
    void observe(const Step& step) override;
    void end();

    LatencyReport report() const;

private:
    std::int64_t backing() const;   // counts up when memory is got from the device or moved
    std::int64_t released() const;  // counts up when it is given back, or refused

    const LoggedDevice* device_ = nullptr;
    const AllocatorStats* stats_ = nullptr;
    std::int64_t start_ns_ = 0, driver_before_ = 0, backing_before_ = 0, released_before_ = 0;
    std::array<std::vector<std::int64_t>, kOpClasses> all_, own_;
    std::vector<std::vector<std::int64_t>> calls_;  // by kind
    std::vector<double> modelled_;                  // by kind
    std::vector<std::int64_t> repetition_ns_, repetition_own_ns_;
};

}  // namespace fragsim
