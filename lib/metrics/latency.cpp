#include "lib/metrics/latency.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace fragsim {
namespace {

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::int64_t rank(const std::vector<std::int64_t>& sorted, double part) {
    const auto at = static_cast<std::size_t>(std::ceil(part * static_cast<double>(sorted.size())));
    return sorted[std::max<std::size_t>(at, 1) - 1];
}

// Two looks at the clock with nothing between them.
std::int64_t clock_cost() {
    std::vector<std::int64_t> costs;
    for (int i = 0; i < 1001; ++i) {
        const std::int64_t start = now_ns();
        costs.push_back(now_ns() - start);
    }
    return summarize(std::move(costs)).p50;
}

}  // namespace

LatencySummary summarize(std::vector<std::int64_t> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    return {static_cast<std::int64_t>(values.size()), values.front(), rank(values, 0.5), rank(values, 0.9),
        rank(values, 0.99), rank(values, 0.999), values.back(),
        std::accumulate(values.begin(), values.end(), std::int64_t{0})};
}

const char* name(OpClass op_class) {
    static constexpr const char* kNames[] = {
        "alloc_hit", "alloc_growth", "alloc_retry", "free_kept", "free_released", "other"};
    return kNames[static_cast<std::size_t>(op_class)];
}

double LatencyReport::a_a_noise() const {
    std::int64_t even = 0, odd = 0;
    const std::size_t pairs = repetition_ns.size() / 2;
    for (std::size_t i = 0; i < 2 * pairs; ++i) (i % 2 == 0 ? even : odd) += repetition_ns[i];
    return odd == 0 ? 0 : static_cast<double>(even) / static_cast<double>(odd) - 1;
}

void LatencyMeter::begin(const LoggedDevice& device, const AllocatorStats& stats, std::size_t ops) {
    device_ = &device;
    stats_ = &stats;
    repetition_ns_.push_back(0);
    repetition_own_ns_.push_back(0);
    // The largest classes grow to their size at once; the others are rare.
    for (const OpClass op_class : {OpClass::alloc_hit, OpClass::free_kept})
        for (auto* values : {&all_[static_cast<std::size_t>(op_class)], &own_[static_cast<std::size_t>(op_class)]})
            values->reserve(values->size() + ops);
}

void LatencyMeter::before(const Step&) {
    driver_before_ = device_->measured_ns();
    backing_before_ = backing();
    released_before_ = released();
    start_ns_ = now_ns();
}

void LatencyMeter::observe(const Step& step) {
    const std::int64_t all = now_ns() - start_ns_, own = all - (device_->measured_ns() - driver_before_);
    const bool gave_back = released() != released_before_;
    OpClass op_class = OpClass::other;
    if (step.kind == EventKind::alloc)
        op_class = gave_back                      ? OpClass::alloc_retry
                   : backing() != backing_before_ ? OpClass::alloc_growth
                                                  : OpClass::alloc_hit;
    else if (step.kind == EventKind::free || step.kind == EventKind::free_requested ||
             step.kind == EventKind::free_completed)
        op_class = gave_back ? OpClass::free_released : OpClass::free_kept;
    all_[static_cast<std::size_t>(op_class)].push_back(all);
    own_[static_cast<std::size_t>(op_class)].push_back(own);
    repetition_ns_.back() += all;
    repetition_own_ns_.back() += own;
}

// A driver's own pool makes no calls that could be seen; its growth shows in the statistics.
std::int64_t LatencyMeter::backing() const { return device_->backing_calls() + stats_->num_device_alloc; }
std::int64_t LatencyMeter::released() const {
    return stats_->num_device_free + stats_->num_alloc_retries + device_->refused();
}

void LatencyMeter::end() {
    for (const LoggedDevice::CallTime& call : device_->call_times()) {
        const auto kind = static_cast<std::size_t>(call.kind);
        if (kind >= calls_.size()) {
            calls_.resize(kind + 1);
            modelled_.resize(kind + 1);
        }
        calls_[kind].push_back(call.measured_ns);
        modelled_[kind] += call.modelled_ns;
    }
}

LatencyReport LatencyMeter::report() const {
    LatencyReport report;
    for (std::size_t i = 0; i < kOpClasses; ++i) report.ops[i] = {summarize(all_[i]), summarize(own_[i])};
    for (std::size_t kind = 0; kind < calls_.size(); ++kind) {
        if (calls_[kind].empty()) continue;
        report.calls.push_back({static_cast<DriverCallKind>(kind), summarize(calls_[kind]), modelled_[kind]});
        report.driver_ns += report.calls.back().measured.total;
        report.modelled_driver_ns += modelled_[kind];
    }
    report.repetition_ns = repetition_ns_;
    report.repetition_own_ns = repetition_own_ns_;
    report.clock_ns = clock_cost();
    return report;
}

}  // namespace fragsim
