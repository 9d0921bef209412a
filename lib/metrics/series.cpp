#include "lib/metrics/series.hpp"

namespace fragsim {

SeriesRecorder::SeriesRecorder(const Trace& trace, const Policy& policy)
    : policy_(policy), retries_seen_(policy.stats().num_alloc_retries), last_(now()) {
    for (auto* column :
        {&series_.requested, &series_.allocated, &series_.active, &series_.reserved, &series_.largest_free})
        column->reserve(trace.ops);
}

void SeriesRecorder::observe(const Step& step) {
    fill_up_to(step.op);
    last_ = now();
    if (!is_op(step.kind)) return;
    fill_up_to(step.op + 1);
    if (const std::int64_t retries = policy_.stats().num_alloc_retries; retries != retries_seen_) {
        series_.retries.push_back(step.op);
        retries_seen_ = retries;
    }
}

Series SeriesRecorder::take(std::uint32_t ops) {
    fill_up_to(ops);
    return std::move(series_);
}

SeriesRecorder::Row SeriesRecorder::now() const {
    const AllocatorStats& stats = policy_.stats();
    return {stats.requested_bytes.all.current, stats.allocated_bytes.all.current, stats.active_bytes.all.current,
        stats.reserved_bytes.all.current, policy_.largest_free()};
}

void SeriesRecorder::fill_up_to(std::uint32_t op) {
    while (series_.size() < op) {
        series_.requested.push_back(last_.requested);
        series_.allocated.push_back(last_.allocated);
        series_.active.push_back(last_.active);
        series_.reserved.push_back(last_.reserved);
        series_.largest_free.push_back(last_.largest_free);
    }
}

}  // namespace fragsim
