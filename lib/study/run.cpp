#include "lib/study/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lib/core/error.hpp"
#include "lib/device/cuda_device.hpp"
#include "lib/device/host_device.hpp"
#include "lib/metrics/meter.hpp"
#include "lib/replay/lifespans.hpp"
#include "lib/replay/pacer.hpp"
#include "lib/replay/recorded_address_space.hpp"
#include "lib/replay/toucher.hpp"

namespace fragsim {
namespace {

// The physical device of a run, and what a policy needs to work on it. A CUDA device is opened once for all
// repetitions.
class Hardware {
public:
    Hardware(const Trace& trace, const PolicySpec& spec, const RunOptions& options) {
        const std::optional<Bytes> bound = spec.info->limits_itself ? std::nullopt : options.capacity;
        if (options.device.kind == DeviceChoice::Kind::host) {
            host_.emplace(HostDevice::Config{
                bound, options.address_space ? *options.address_space : fresh_address_space(trace).start});
        } else {
            const bool ballast = options.device.ballast;
            cuda_.emplace(CudaDevice::Config{
                options.device.ordinal, ballast ? std::nullopt : bound, ballast ? options.capacity : std::nullopt});
        }
    }

    Device& device() { return cuda_ ? static_cast<Device&>(*cuda_) : *host_; }
    HostDevice* host() { return host_ ? &*host_ : nullptr; }
    CudaDevice* cuda() { return cuda_ ? &*cuda_ : nullptr; }

private:
    std::optional<HostDevice> host_;
    std::optional<CudaDevice> cuda_;
};

// A policy on its device, at the trace's initial state.
class Setup {
public:
    Setup(const Trace& trace, const PolicySpec& spec, const RunOptions& options, Hardware& hardware)
        : hardware_(hardware),
          device_(hardware.device(), *options.costs,
              options.repetitions > 0 ? LoggedDevice::Timing::measured : LoggedDevice::Timing::modelled),
          lifespans_(spec.info->offline ? lifespans_of(trace) : std::vector<Lifespan>{}),
          policy_(spec.info->make(spec.settings(),
              {device_, options.device.ballast ? std::nullopt : options.capacity, trace.pools, &lifespans_})),
          restored_(restore_start(trace, *policy_, options.frees, options.adopt_start && hardware.host())) {
        if (!restored_.adopted || !hardware.host()) return;
        std::vector<CudaMallocAddresses::Range> segments;
        for (const SegmentPicture& segment : trace.initial.segments)
            if (segment.expandable)
                hardware.host()->adopt_mapped(segment.address + static_cast<Address>(segment.size), segment.size);
            else
                segments.push_back({segment.address, segment.size});
        hardware.host()->adopt(std::move(segments));
    }
    ~Setup() {
        policy_.reset();
        if (hardware_.cuda()) hardware_.cuda()->give_back_all();
    }

    LoggedDevice& device() { return device_; }
    Policy& policy() { return *policy_; }
    const Restored& restored() const { return restored_; }

private:
    Hardware& hardware_;
    LoggedDevice device_;
    std::vector<Lifespan> lifespans_;
    std::unique_ptr<Policy> policy_;
    Restored restored_;
};

// Each answer takes a replay of its own up to there, so that asking changes nothing. Not on a real device.
std::vector<RecordedOomAnswer> answer_recorded_ooms(
    const Trace& trace, const PolicySpec& spec, const RunOptions& options) {
    std::vector<RecordedOomAnswer> answers;
    if (options.device.kind != DeviceChoice::Kind::host) return answers;
    for (std::uint32_t i = 0; i < trace.events.size() && answers.size() < Result::kMaxRecordedOoms; ++i) {
        if (trace.events[i].kind() != EventKind::oom) continue;
        const RecordedOom& oom = trace.ooms[trace.events[i].subject];
        Hardware hardware(trace, spec, options);
        Setup setup(trace, spec, options, hardware);
        const ReplayOutcome before = replay(trace, setup.policy(), setup.device(), {},
            {.frees = options.frees, .end_event = i, .left_out = setup.restored().left_out});
        const BufferId extra{static_cast<std::uint32_t>(trace.buffers.size())};
        const bool served = setup.policy().allocate(extra, {oom.requested, oom.stream}).has_value();
        answers.push_back({before.ops, oom.requested, served});
    }
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

    result.device = options.device;
    Hardware hardware(trace, spec, options);
    if (const CudaDevice* cuda = hardware.cuda())
        result.card = fmt::format("{}, CUDA {}.{}", cuda->card().name, cuda->card().driver_version / 1000,
            cuda->card().driver_version % 1000 / 10);
    {
        Setup setup(trace, spec, options, hardware);
        Meter meter(trace, setup.policy(), setup.device(), options.capacity);
        std::vector<ReplayObserver*> observers{&meter}, before;
        std::optional<Auditor> auditor;
        if (options.audit)
            observers.push_back(
                &auditor.emplace(trace, setup.policy(), setup.device(), options.capacity, setup.restored().placed));
        std::optional<Timeline> timeline;
        if (options.timeline)
            observers.push_back(&timeline.emplace(trace, setup.policy(), options.timeline_every, options.timeline));
        std::optional<HistoryRecorder> history;
        if (options.record_history) observers.push_back(&history.emplace(trace, setup.policy(), setup.device()));
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
