#include "lib/study/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lib/core/error.hpp"
#include "lib/metrics/meter.hpp"
#include "lib/replay/pacer.hpp"
#include "lib/replay/toucher.hpp"
#include "lib/study/setup.hpp"

namespace fragsim {
namespace {

// Not on a real device: each answer takes a replay of its own.
std::vector<RecordedOomAnswer> answer_recorded_ooms(
    const Trace& trace, const PolicySpec& spec, const RunOptions& options) {
    std::vector<RecordedOomAnswer> answers;
    if (options.device.kind != DeviceChoice::Kind::host) return answers;
    for (const std::uint32_t event : recorded_oom_events(trace))
        answers.push_back(ask_recorded_oom(trace, spec, options, event));
    return answers;
}

// The same replay again and again, timed and not looked at otherwise.
LatencyReport measure(const Trace& trace, const PolicySpec& spec, const RunOptions& options, Hardware& hardware) {
    LatencyMeter latency;
    for (int repetition = 0; repetition < options.repetitions; ++repetition) {
        Setup setup(trace, spec, options, hardware);
        latency.begin(setup.device(), setup.policy().stats(), trace.ops);
        ReplayObserver* const observers[] = {&latency};
        replay(trace, setup.policy(), setup.device(), observers,
            {.on_oom = options.on_oom,
                .frees = options.frees,
                .left_out = setup.restored().left_out,
                .before = observers});
        latency.end();
    }
    return latency.report();
}

}  // namespace

std::string DeviceChoice::label() const { return kind == Kind::host ? "host" : fmt::format("cuda:{}", ordinal); }

const char* name(Start start) {
    switch (start) {
        case Start::empty: return "empty";
        case Start::recorded: return "recorded";
        case Start::live: return "live";
    }
    return "";
}

bool takes_over_start(const PolicySpec& policy, const std::optional<PolicySpec>& in_force, bool alone) {
    return alone && in_force && same_setting(policy, *in_force);
}

std::int64_t count_failures(
    const ReplayOutcome& outcome, std::int64_t left_out, const std::vector<RecordedOomAnswer>& recorded) {
    return outcome.ooms + left_out +
           std::count_if(recorded.begin(), recorded.end(), [](const RecordedOomAnswer& a) { return !a.served; });
}

double Result::real(std::string_view key) const {
    const auto metric = std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.key == key; });
    FRAGSIM_ASSERT(metric != metrics.end());
    return fragsim::real(*metric);
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
    result.limits = options.limits;
    if (spec.info->torch_settings) result.torch_settings = spec.info->torch_settings(spec.settings());
    if (spec.info->advise) result.advice = spec.info->advise(spec.settings(), options.limits);

    result.device = options.device;
    Hardware hardware(trace, spec, options);
    if (const CudaDevice* cuda = hardware.cuda())
        result.card = fmt::format("{}, CUDA {}.{}", cuda->card().name, cuda->card().driver_version / 1000,
            cuda->card().driver_version % 1000 / 10);
    {
        Setup setup(trace, spec, options, hardware);
        const Bounds bounds = spec.info->bounds(options.limits);
        result.start_from = trace.initial.segments.empty() ? Start::empty
                            : setup.restored().adopted     ? Start::recorded
                                                           : Start::live;
        result.left_out = std::ssize(setup.restored().left_out);
        Meter meter(trace, setup.policy(), setup.device(), bounds);
        std::vector<ReplayObserver*> observers{&meter}, before;
        std::optional<Auditor> auditor;
        if (options.audit)
            observers.push_back(
                &auditor.emplace(trace, setup.policy(), setup.device(), bounds.reserved, setup.restored().placed));
        std::optional<Timeline> timeline;
        if (options.timeline)
            observers.push_back(&timeline.emplace(trace, setup.policy(), options.timeline_every, options.timeline));
        std::optional<HistoryRecorder> history;
        if (options.record_history) {
            observers.push_back(&history.emplace(trace, setup.policy(), setup.device()));
            result.start = setup.policy().picture();
        }
        std::optional<SeriesRecorder> series;
        if (options.record_series) observers.push_back(&series.emplace(trace, setup.policy()));
        std::optional<CourseRecorder> courses;
        if (options.record_courses) observers.push_back(&courses.emplace(setup.policy().stats()));
        std::optional<PlacementRecorder> placements;
        if (options.record_placements) observers.push_back(&placements.emplace(setup.device(), setup.policy().stats()));
        std::optional<Pacer> pacer;
        if (options.pace && !trace.time_us.empty()) before.push_back(&pacer.emplace(trace, *options.pace));
        std::optional<Toucher> toucher;
        if (hardware.cuda() && options.touch != TouchMode::none) {
            observers.push_back(&toucher.emplace(trace, *hardware.cuda(), options.touch));
            before.push_back(&*toucher);
        }

        const auto start = std::chrono::steady_clock::now();
        result.outcome = replay(trace, setup.policy(), setup.device(), observers,
            {.on_oom = options.on_oom,
                .frees = options.frees,
                .left_out = setup.restored().left_out,
                .before = before});
        result.replay_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

        if (toucher) result.spoilt_words = static_cast<std::int64_t>(toucher->finish().words);
        if (auditor) {
            auditor->finish();
            result.audit_findings = auditor->findings();
        }
        result.metrics = meter.metrics();
        result.ooms = meter.ooms();
        result.driver_calls = setup.device().calls();
        if (history) result.history = history->take();
        if (series) result.series = series->take(result.outcome.ops);
        if (courses) result.courses = courses->take();
        if (placements) result.placements = placements->take();
        result.end = setup.policy().picture();
    }
    if (options.repetitions > 0) result.latency = measure(trace, spec, options, hardware);
    result.recorded_ooms = answer_recorded_ooms(trace, spec, options);
    // Only PyTorch's policies tell small blocks from large ones.
    if (!spec.info->torch_settings)
        std::erase_if(result.metrics, [](const Metric& m) {
            return m.key.find(".large_pool.") != std::string::npos || m.key.find(".small_pool.") != std::string::npos;
        });
    return result;
}

}  // namespace fragsim
