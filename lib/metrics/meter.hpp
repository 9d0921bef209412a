// Everything a replay is judged by, kept up op by op. Costs a few nanoseconds an op: sums of what the policy's
// statistics say, and a look at the free ranges only when reserved memory reaches a new peak. Source: spec/policies.md,
// section 11.
#pragma once

#include <array>
#include <vector>

#include "lib/metrics/catalog.hpp"
#include "lib/metrics/oom.hpp"
#include "lib/replay/replay.hpp"

namespace fragsim {

class Meter final : public ReplayObserver {
public:
    // All must outlive this.
    Meter(const Trace& trace, const Policy& policy, const LoggedDevice& device, const Bounds& bounds);

    void observe(const Step& step) override;

    // Every metric of the catalog, in its order. Call after the last step.
    std::vector<Metric> metrics() const;
    const std::vector<Oom>& ooms() const { return ooms_; }

private:
    // What is averaged: the state after an event, and sums of it weighted by ops (1 each) or by the time until the next
    // event.
    enum Level { kRequested, kAllocated, kActive, kReserved, kInactiveSplit, kInternal, kExternal, kLevels };
    using Levels = std::array<double, kLevels + 1>;  // one more, for vectors of two
    static void add(Levels& sum, const Levels& level, double weight) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += level[i] * weight;
    }

    struct Moment {
        Bytes requested = 0, allocated = 0, reserved = 0;
        std::uint32_t op = 0;
    };

    void measure();
    void remember_peaks(std::uint32_t op);

    const Trace& trace_;
    const Policy& policy_;
    const AllocatorStats& stats_;
    Bytes alignment_;
    const LoggedDevice& device_;
    Bounds bounds_;

    Levels now_{}, sum_by_op_{}, sum_by_time_{};
    double ops_ = 0, time_us_ = 0;
    std::int64_t last_time_us_ = 0;
    double footprint_ratio_sum_ = 0, footprint_ratio_ops_ = 0;  // reserved / requested while anything is live

    Moment reserved_peak_, requested_peak_;  // the first time each is largest
    std::vector<Bytes> free_at_peak_;
    Bytes load_ = 0, load_peak_ = 0;  // live bytes in the policy's units: below this it cannot go

    std::int64_t backing_calls_seen_ = 0;
    double modelled_seen_ns_ = 0;
    std::int64_t allocs_ = 0, misses_ = 0;
    std::vector<double> driver_ns_;  // driver time of each alloc that called the driver
    std::vector<Oom> ooms_;
};

}  // namespace fragsim
