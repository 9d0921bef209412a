#include "lib/metrics/meter.hpp"

#include <algorithm>
#include <cmath>

#include "lib/metrics/fragmentation.hpp"

namespace fragsim {
namespace {

double quotient(double a, double b) { return b == 0 ? 0 : a / b; }
double quotient(Bytes a, Bytes b) { return quotient(static_cast<double>(a), static_cast<double>(b)); }

// The p-th part of `total` values by nearest rank; those not in `largest` (ascending) are 0.
double percentile(const std::vector<double>& largest, std::int64_t total, double p) {
    const auto rank = static_cast<std::int64_t>(std::ceil(p * static_cast<double>(total)));  // from 1
    const std::int64_t zeros = total - static_cast<std::int64_t>(largest.size());
    return rank <= zeros || largest.empty() ? 0 : largest[static_cast<std::size_t>(rank - zeros - 1)];
}

}  // namespace

Meter::Meter(const Trace& trace, const Policy& policy, const LoggedDevice& device, const Bounds& bounds)
    : trace_(trace), policy_(policy), stats_(policy.stats()), alignment_(policy.alignment()), device_(device),
      bounds_(bounds), backing_calls_seen_(device.backing_calls()), modelled_seen_ns_(device.modelled_ns()) {
    for (const BlockPicture& block : policy.picture().blocks)
        if (block.state != BlockState::inactive) load_ += round_up(block.requested, alignment_);
    load_peak_ = load_;
    if (!trace.time_us.empty()) last_time_us_ = trace.time_us.front();
    measure();
    remember_peaks(0);
}

void Meter::observe(const Step& step) {
    if (!trace_.time_us.empty()) {
        const std::int64_t time = trace_.time_us[step.event];
        if (time != last_time_us_) {
            const auto held = static_cast<double>(time - last_time_us_);
            add(sum_by_time_, now_, held);
            time_us_ += held;
            last_time_us_ = time;
        }
    }
    if (step.kind == EventKind::alloc) {
        ++allocs_;
        misses_ += device_.backing_calls() != backing_calls_seen_;
        if (const double ns = device_.modelled_ns() - modelled_seen_ns_; ns > 0) driver_ns_.push_back(ns);
        const Buffer& buffer = trace_.buffers[step.buffer.value];
        if (step.placement) {
            load_ += round_up(buffer.requested, alignment_);
            load_peak_ = std::max(load_peak_, load_);
        } else {
            ooms_.push_back(attribute_oom(policy_, step.op, request_of(buffer), bounds_, step.rejected));
        }
    } else if (step.kind == EventKind::free || step.kind == EventKind::free_completed) {
        load_ -= round_up(trace_.buffers[step.buffer.value].requested, alignment_);
    }
    backing_calls_seen_ = device_.backing_calls();
    modelled_seen_ns_ = device_.modelled_ns();

    measure();
    if (!is_op(step.kind)) return;
    ops_ += 1;
    add(sum_by_op_, now_, 1);
    if (now_[kRequested] > 0) {
        footprint_ratio_sum_ += now_[kReserved] / now_[kRequested];
        footprint_ratio_ops_ += 1;
    }
    remember_peaks(step.op);
}

void Meter::measure() {
    now_[kRequested] = static_cast<double>(stats_.requested_bytes.all.current);
    now_[kAllocated] = static_cast<double>(stats_.allocated_bytes.all.current);
    now_[kActive] = static_cast<double>(stats_.active_bytes.all.current);
    now_[kReserved] = static_cast<double>(stats_.reserved_bytes.all.current);
    now_[kInactiveSplit] = static_cast<double>(stats_.inactive_split_bytes.all.current);
    now_[kInternal] = now_[kActive] > 0 ? 1 - now_[kRequested] / now_[kActive] : 0;
    const double free = now_[kReserved] - now_[kActive];
    now_[kExternal] = free > 0 ? 1 - static_cast<double>(policy_.largest_free()) / free : 0;
}

void Meter::remember_peaks(std::uint32_t op) {
    const Bytes requested = stats_.requested_bytes.all.current, reserved = stats_.reserved_bytes.all.current;
    const Moment moment{requested, stats_.active_bytes.all.current, reserved, op};
    if (requested > requested_peak_.requested) requested_peak_ = moment;
    if (reserved > reserved_peak_.reserved) {
        reserved_peak_ = moment;
        free_at_peak_.clear();
        policy_.free_sizes(free_at_peak_);
    }
}

std::vector<Metric> Meter::metrics() const {
    std::vector<Metric> metrics;
    const auto whole = [&](std::string key, std::int64_t value) { metrics.push_back({std::move(key), value}); };
    const auto real = [&](std::string key, double value) { metrics.push_back({std::move(key), value}); };
    for_each_statistic(stats_, whole);

    const auto means = [&](const Levels& sum, double weight, const std::string& suffix) {
        const auto mean = [&](const char* key, double value) {
            whole(key + suffix, std::llround(quotient(value, weight)));
        };
        mean("requested_bytes", sum[kRequested]);
        mean("allocated_bytes", sum[kAllocated]);
        mean("active_bytes", sum[kActive]);
        mean("reserved_bytes", sum[kReserved]);
        mean("inactive_split_bytes", sum[kInactiveSplit]);
    };
    const bool timed = time_us_ > 0;
    means(sum_by_op_, ops_, ".mean_by_op");
    if (timed) means(sum_by_time_, time_us_, ".mean_by_time");

    const FreeSpace free(free_at_peak_);
    real("internal_fragmentation.at_peak",
        reserved_peak_.allocated == 0 ? 0 : 1 - quotient(reserved_peak_.requested, reserved_peak_.allocated));
    real("internal_fragmentation.mean_by_op", quotient(sum_by_op_[kInternal], ops_));
    if (timed) real("internal_fragmentation.mean_by_time", sum_by_time_[kInternal] / time_us_);
    real("external_fragmentation.at_peak", free.external());
    real("external_fragmentation.mean_by_op", quotient(sum_by_op_[kExternal], ops_));
    if (timed) real("external_fragmentation.mean_by_time", sum_by_time_[kExternal] / time_us_);
    real("fragmentation_l2.at_peak", free.l2());
    real("unusable_index.2MiB.at_peak", free.unusable_index(2 * kMiB));
    real("unusable_index.20MiB.at_peak", free.unusable_index(20 * kMiB));
    real("unusable_index.100MiB.at_peak", free.unusable_index(100 * kMiB));
    real("unusable_index.1GiB.at_peak", free.unusable_index(kGiB));
    whole("holes.at_peak", free.holes());
    whole("hole_median_bytes.at_peak", free.median());
    whole("hole_largest_bytes.at_peak", free.largest());

    const Bytes reserved = reserved_peak_.reserved, requested = requested_peak_.requested;
    whole("load_bytes", load_peak_);
    real("overhead_over_load", load_peak_ == 0 ? 0 : quotient(reserved, load_peak_) - 1);
    real("utilization.at_peak", quotient(reserved_peak_.allocated, reserved));
    real("utilization.peaks", quotient(stats_.active_bytes.all.peak, reserved));
    real("johnstone_wilson_1", quotient(footprint_ratio_sum_, footprint_ratio_ops_));
    real("johnstone_wilson_2", quotient(requested_peak_.reserved, requested));
    real("johnstone_wilson_3", quotient(reserved, reserved_peak_.requested));
    real("johnstone_wilson_4", quotient(reserved, requested));

    Bytes moved = 0;
    for (const DriverCall& call : device_.calls())
        if (takes_memory(call.kind) || gives_memory(call.kind)) moved += call.bytes;
    std::vector<double> driver_ns = driver_ns_;
    std::sort(driver_ns.begin(), driver_ns.end());
    whole("num_driver_calls", static_cast<std::int64_t>(device_.calls().size()) + device_.refused());
    whole("driver_bytes", moved);
    whole("num_hits", allocs_ - misses_);
    whole("num_misses", misses_);
    whole("num_stream_waits", device_.waits());
    whole("num_host_syncs", device_.synchronizations());
    real("driver_time_ns", device_.modelled_ns());
    real("driver_time_per_alloc_ns.p50", percentile(driver_ns, allocs_, 0.5));
    real("driver_time_per_alloc_ns.p90", percentile(driver_ns, allocs_, 0.9));
    real("driver_time_per_alloc_ns.p99", percentile(driver_ns, allocs_, 0.99));
    real("driver_time_per_alloc_ns.max", driver_ns.empty() ? 0 : driver_ns.back());
    return metrics;
}

}  // namespace fragsim
