#include "lib/study/run.hpp"

#include <algorithm>
#include <chrono>

#include "lib/core/error.hpp"
#include "lib/device/host_device.hpp"
#include "lib/metrics/meter.hpp"
#include "lib/replay/lifespans.hpp"
#include "lib/replay/recorded_address_space.hpp"

namespace fragsim {
namespace {

// A policy on its host device, at the trace's initial state.
class Setup {
public:
    Setup(const Trace& trace, const PolicySpec& spec, const RunOptions& options)
        : host_({spec.info->limits_itself ? std::nullopt : options.capacity,
              options.address_space ? *options.address_space : fresh_address_space(trace).start}),
          device_(host_, CostModel::h200()),
          lifespans_(spec.info->offline ? lifespans_of(trace) : std::vector<Lifespan>{}),
          policy_(spec.info->make(spec.settings(), {device_, options.capacity, trace.pools, &lifespans_})) {
        if (!restore_start(trace, *policy_)) return;
        std::vector<CudaMallocAddresses::Range> segments;
        for (const SegmentPicture& segment : trace.initial.segments)
            if (segment.expandable)
                host_.adopt_mapped(segment.address + static_cast<Address>(segment.size), segment.size);
            else
                segments.push_back({segment.address, segment.size});
        host_.adopt(std::move(segments));
    }

    LoggedDevice& device() { return device_; }
    Policy& policy() { return *policy_; }

private:
    HostDevice host_;
    LoggedDevice device_;
    std::vector<Lifespan> lifespans_;
    std::unique_ptr<Policy> policy_;
};

// Each answer takes a replay of its own up to there, so that asking changes nothing.
std::vector<RecordedOomAnswer> answer_recorded_ooms(
    const Trace& trace, const PolicySpec& spec, const RunOptions& options) {
    std::vector<RecordedOomAnswer> answers;
    for (std::uint32_t i = 0; i < trace.events.size() && answers.size() < Result::kMaxRecordedOoms; ++i) {
        if (trace.events[i].kind() != EventKind::oom) continue;
        const RecordedOom& oom = trace.ooms[trace.events[i].subject];
        Setup setup(trace, spec, options);
        const ReplayOutcome before = replay(trace, setup.policy(), setup.device(), {}, {OnOom::skip, options.frees, i});
        const BufferId extra{static_cast<std::uint32_t>(trace.buffers.size())};
        const bool served = setup.policy().allocate(extra, {oom.requested, oom.stream}).has_value();
        answers.push_back({before.ops, oom.requested, served});
    }
    return answers;
}

}  // namespace

bool Result::survives() const {
    return outcome.ooms == 0 &&
           std::all_of(recorded_ooms.begin(), recorded_ooms.end(), [](const auto& a) { return a.served; });
}

double Result::real(std::string_view key) const {
    const auto metric = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.key == key; });
    FRAGSIM_ASSERT(metric != metrics.end());
    return std::visit([](auto value) { return static_cast<double>(value); }, metric->value);
}

std::int64_t Result::count(std::string_view key) const {
    const auto metric = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.key == key; });
    FRAGSIM_ASSERT(metric != metrics.end());
    return std::get<std::int64_t>(metric->value);
}

Result run_policy(const Trace& trace, const PolicySpec& spec, const RunOptions& options) {
    Result result;
    result.policy = spec.info->name;
    result.label = spec.label();
    result.parameters = spec.all_parameters();
    result.capacity = options.capacity;
    if (spec.info->torch_settings) result.torch_settings = spec.info->torch_settings(spec.settings());
    if (spec.info->advise) result.advice = spec.info->advise(spec.settings(), options.capacity);

    Setup setup(trace, spec, options);
    Meter meter(trace, setup.policy(), setup.device(), options.capacity);
    std::vector<ReplayObserver*> observers{&meter};
    std::optional<Auditor> auditor;
    if (options.audit) observers.push_back(&auditor.emplace(trace, setup.policy(), setup.device(), options.capacity));
    std::optional<Timeline> timeline;
    if (options.timeline)
        observers.push_back(&timeline.emplace(trace, setup.policy(), options.timeline_every, options.timeline));

    std::optional<HistoryRecorder> history;
    if (options.record_history) observers.push_back(&history.emplace(trace, setup.policy(), setup.device()));

    const auto start = std::chrono::steady_clock::now();
    result.outcome = replay(trace, setup.policy(), setup.device(), observers, {options.on_oom, options.frees});
    result.replay_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

    if (auditor) {
        auditor->finish();
        result.audit_findings = auditor->findings();
    }
    result.metrics = meter.metrics();
    // Only PyTorch's policies tell small blocks from large ones.
    if (!spec.info->torch_settings)
        std::erase_if(result.metrics, [](const Metric& m) {
            return m.key.find(".large_pool.") != std::string::npos || m.key.find(".small_pool.") != std::string::npos;
        });
    result.ooms = meter.ooms();
    result.driver_calls = setup.device().calls();
    if (history) result.history = history->take();
    result.end = setup.policy().picture();
    result.recorded_ooms = answer_recorded_ooms(trace, spec, options);
    return result;
}

}  // namespace fragsim
