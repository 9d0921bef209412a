// Every policy under random programs: what must always hold, and PyTorch's allocator against its slow twin.
#include <fmt/format.h>

#include <algorithm>

#include "lib/metrics/catalog.hpp"
#include "lib/metrics/meter.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/reference_allocator.hpp"
#include "tests/support/scenario.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

MakePolicy policy_of(const Scenario& scenario) {
    const PolicySpec spec = spec_of(scenario);
    return [spec](const PolicyContext& context) { return spec.info->make(spec.given, context); };
}

Playback play(const Scenario& scenario, const MakePolicy& make) {
    return Playback(trace_of(scenario), make,
        Playback::within(*spec_of(scenario).info, scenario.limits));
}

// Everything a run shows of itself, for comparing two.
std::string account_of(const Playback& play) {
    std::string out = describe(play.device.calls()) + '\n';
    for (const auto& placement : play.placements)
        out += placement ? fmt::format("{:#x}+{} ", placement->address, placement->allocated) : "oom ";
    out += '\n' + describe(play.policy->picture(), play.device.calls()) + '\n';
    for_each_statistic(
        play.policy->stats(), [&](const std::string& key, Bytes value) { out += fmt::format("{} {}\n", key, value); });
    return out;
}

// The settings of a scenario as the slow twin reads them; none: the policy is no native allocator.
std::optional<ReferenceSettings> reference_settings(const Scenario& scenario) {
    const PolicySpec spec = spec_of(scenario);
    if (spec.info->name != std::string_view("caching") && spec.info->name != std::string_view("split-capped"))
        return {};
    ReferenceSettings settings;
    settings.limits = scenario.limits;
    std::optional<Bytes> slack;
    for (const auto& [key, value] : spec.given) {
        if (key == "max_split_size_mb") settings.max_split = std::stol(value) * kMiB;
        if (key == "max_non_split_rounding_mb") slack = std::stol(value) * kMiB;
        if (key == "large_segment_size_mb") settings.large_segment = std::stol(value) * kMiB;
        if (key == "garbage_collection_threshold") settings.gc_threshold = std::stod(value);
        if (key == "per_process_memory_fraction") settings.fraction = std::stod(value);
        if (key == "throw_on_cudamalloc_oom") settings.rejects = true;
        if (key == "torch_version") settings.by_serial = value == "2.13";
        if (key == "roundup_power2_divisions") {
            if (value == "[1:4,8:2,16:0,>:1]")
                settings.divisions = {4, 0, 0, 2, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
            else
                settings.divisions.fill(std::stol(value));
        }
    }
    settings.slack = slack.value_or(settings.large_segment);
    return settings;
}

// Counts again, from the trace, the placements and the driver calls alone.
class Recount final : public ReplayObserver {
public:
    Recount(const Trace& trace, const Policy& policy, const LoggedDevice& device)
        : trace_(trace), device_(device), alignment_(policy.alignment()), backing_calls_(device.backing_calls()),
          sizes_(trace.buffers.size()) {
        catch_up();  // with what the policy got before its first op
    }

    void observe(const Step& step) override {
        if (step.kind == EventKind::alloc) (device_.backing_calls() == backing_calls_ ? hits : misses) += 1;
        backing_calls_ = device_.backing_calls();
        catch_up();
        const Bytes requested = step.buffer ? trace_.buffers[step.buffer.value].requested : 0;
        if (step.placement) {
            sizes_[step.buffer.value] = step.placement->allocated;
            allocated_ += step.placement->allocated;
            load_ += round_up(requested, alignment_);
        }
        if (step.kind == EventKind::free || step.kind == EventKind::free_requested)
            allocated_ -= sizes_[step.buffer.value];
        if (step.kind == EventKind::free || step.kind == EventKind::free_completed)
            load_ -= round_up(requested, alignment_);
        allocated_peak = std::max(allocated_peak, allocated_);
        load_peak = std::max(load_peak, load_);
        if (is_op(step.kind)) ++ops, reserved_sum += reserved_;
    }

    void catch_up() {
        for (; calls_ < device_.calls().size(); ++calls_) {
            const DriverCall& call = device_.calls()[calls_];
            if (takes_memory(call.kind)) reserved_ += call.bytes;
            if (gives_memory(call.kind)) reserved_ -= call.bytes;
            if (takes_memory(call.kind) || gives_memory(call.kind)) driver_bytes += call.bytes;
            reserved_peak = std::max(reserved_peak, reserved_);
        }
    }

    std::int64_t hits = 0, misses = 0, ops = 0;
    Bytes reserved_peak = 0, allocated_peak = 0, load_peak = 0, driver_bytes = 0, reserved_sum = 0;

private:
    const Trace& trace_;
    const LoggedDevice& device_;
    Bytes alignment_;
    std::size_t calls_ = 0;
    std::int64_t backing_calls_ = 0;
    std::vector<Bytes> sizes_;
    Bytes reserved_ = 0, allocated_ = 0, load_ = 0;
};

}  // namespace

TEST_CASE("no random program makes a policy break a rule of the auditor", "[property][policy]") {
    check_property(400, [](const Scenario& scenario) {
        Playback run = play(scenario, policy_of(scenario));
        run.run();
        if (!run.auditor.findings().empty()) RC_FAIL(describe(run.auditor.findings()));
    });
}

TEST_CASE("two runs of a random program are the same in everything", "[property][policy]") {
    check_property(100, [](const Scenario& scenario) {
        Playback first = play(scenario, policy_of(scenario)), second = play(scenario, policy_of(scenario));
        first.run();
        second.run();
        RC_ASSERT(account_of(first) == account_of(second));
    });
}

TEST_CASE(
    "PyTorch's allocator does what its slow twin does: calls, placements, blocks, statistics", "[property][caching]") {
    check_property(1500, [](const Scenario& scenario) {
        const auto settings = reference_settings(scenario);
        if (!settings) return;
        Playback fast = play(scenario, policy_of(scenario));
        Playback slow = play(
            scenario, [&](const PolicyContext& context) { return reference_allocator(*settings, context.device); });
        fast.run();
        slow.run();
        if (!slow.auditor.findings().empty()) RC_FAIL("the twin itself: " + describe(slow.auditor.findings()));
        RC_ASSERT(account_of(fast) == account_of(slow));
    });
}

TEST_CASE("metrics are what a recount of the run gives", "[property][metrics]") {
    check_property(300, [](const Scenario& scenario) {
        Playback run = play(scenario, policy_of(scenario));
        Meter meter(run.trace, *run.policy, run.device, spec_of(scenario).info->bounds(scenario.limits));
        Recount recount(run.trace, *run.policy, run.device);
        ReplayObserver* observers[] = {&meter, &recount};
        const ReplayOutcome outcome = replay(run.trace, *run.policy, run.device, observers);

        const auto metrics = meter.metrics();
        const auto metric = [&](std::string_view key) {
            const auto found =
                std::find_if(metrics.begin(), metrics.end(), [&](const Metric& m) { return m.key == key; });
            RC_ASSERT(found != metrics.end());
            return std::get<std::int64_t>(found->value);
        };
        RC_ASSERT(metric("reserved_bytes.all.peak") == recount.reserved_peak);
        RC_ASSERT(metric("allocated_bytes.all.peak") == recount.allocated_peak);
        RC_ASSERT(metric("load_bytes") == recount.load_peak);
        RC_ASSERT(metric("driver_bytes") == recount.driver_bytes);
        RC_ASSERT(metric("num_hits") == recount.hits);
        RC_ASSERT(metric("num_misses") == recount.misses);
        RC_ASSERT(outcome.ooms == meter.ooms().size());
        const double mean =
            recount.ops == 0 ? 0 : static_cast<double>(recount.reserved_sum) / static_cast<double>(recount.ops);
        RC_ASSERT(std::abs(static_cast<double>(metric("reserved_bytes.mean_by_op")) - mean) <= 0.5 + 1e-6 * mean);
    });
}

TEST_CASE("no policy reserves less than the load", "[property][metrics]") {
    check_property(100, [](const Scenario& scenario) {
        Playback run = play(scenario, policy_of(scenario));
        Recount recount(run.trace, *run.policy, run.device);
        ReplayObserver* observers[] = {&recount};
        const ReplayOutcome outcome = replay(run.trace, *run.policy, run.device, observers);
        RC_ASSERT(recount.reserved_peak >= recount.allocated_peak);
        // A free that the policy waited for itself leaves before the recount hears of it.
        const bool delayed = std::any_of(run.trace.events.begin(), run.trace.events.end(),
            [](Event e) { return e.kind() == EventKind::free_requested; });
        RC_ASSERT(delayed || recount.reserved_peak >= recount.load_peak);
        RC_ASSERT(outcome.ops == run.trace.ops);
    });
}
