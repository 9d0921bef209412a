#include "lib/metrics/timeline.hpp"

#include <fmt/format.h>

namespace fragsim {

Timeline::Timeline(const Trace& trace, const Policy& policy, std::uint32_t every, Sink sink)
    : trace_(trace), policy_(policy), every_(every), sink_(std::move(sink)) {
    sink_("op,time_us,requested_bytes,allocated_bytes,active_bytes,reserved_bytes,largest_free_bytes\n");
}

void Timeline::observe(const Step& step) {
    if (!is_op(step.kind) || step.op % every_ != 0) return;
    const AllocatorStats& stats = policy_.stats();
    const std::string time = trace_.time_us.empty() ? "" : fmt::format("{}", trace_.time_us[step.event]);
    sink_(fmt::format("{},{},{},{},{},{},{}\n", step.op, time, stats.requested_bytes.all.current,
        stats.allocated_bytes.all.current, stats.active_bytes.all.current, stats.reserved_bytes.all.current,
        policy_.largest_free()));
}

}  // namespace fragsim
