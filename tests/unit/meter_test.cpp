// The meter on a policy whose figures are dictated op by op: spec/policies.md, section 11.
#include "lib/metrics/meter.hpp"

#include <set>

#include "lib/device/host_device.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_policy.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

struct Level {
    Bytes requested, active, reserved;
};

// Steps through a script with `levels[i]` after op i, and returns the metrics.
class Dictated {
public:
    Dictated(Trace played, const std::vector<Level>& levels)
        : trace_(std::move(played)), device_(host_, CostModel::h200()), policy_(device_) {
        Meter meter(trace_, policy_, device_, {});
        for (std::uint32_t i = 0; i < trace_.events.size(); ++i) {
            set(policy_.said.requested_bytes.all, levels.at(i).requested);
            set(policy_.said.active_bytes.all, levels[i].active);
            set(policy_.said.allocated_bytes.all, levels[i].active);
            set(policy_.said.reserved_bytes.all, levels[i].reserved);
            const EventKind kind = trace_.events[i].kind();
            std::optional<Placement> placement;
            if (kind == EventKind::alloc) placement = Placement{0, 512};
            meter.observe({i, i, kind, trace_.events[i].buffer(), placement});
        }
        metrics_ = meter.metrics();
    }

    bool has(std::string_view key) const {
        return std::any_of(metrics_.begin(), metrics_.end(), [&](const Metric& metric) { return metric.key == key; });
    }
    double operator[](std::string_view key) const {
        for (const Metric& metric : metrics_)
            if (metric.key == key)
                return std::visit([](auto value) { return static_cast<double>(value); }, metric.value);
        FAIL("no metric " << key);
        return 0;
    }

private:
    Trace trace_;
    HostDevice host_{{}};
    LoggedDevice device_;
    FakePolicy policy_;
    std::vector<Metric> metrics_;
};

constexpr const char* kFourOps = "a 0 512; a 1 512; f 0; a 2 512";

}  // namespace

TEST_CASE("the four ratios of Johnstone and Wilson are those of their example", "[unit][meter]") {
    const Dictated metrics(script(kFourOps), {{10, 10, 16}, {14, 14, 16}, {6, 6, 24}, {12, 12, 24}});
    CHECK(metrics["johnstone_wilson_1"] == Approx(2.1857).epsilon(1e-4));
    CHECK(metrics["johnstone_wilson_2"] == Approx(1.1429).epsilon(1e-4));
    CHECK(metrics["johnstone_wilson_3"] == Approx(4.0));
    CHECK(metrics["johnstone_wilson_4"] == Approx(1.7143).epsilon(1e-4));
}

TEST_CASE("ops at which nothing is live are left out of the mean ratio", "[unit][meter]") {
    const Dictated metrics(script("a 0 512; f 0"), {{10, 10, 20}, {0, 0, 20}});
    CHECK(metrics["johnstone_wilson_1"] == Approx(2));
}

TEST_CASE("means are over ops, and over time where the trace has it", "[unit][meter]") {
    Trace timed = script(kFourOps);
    timed.time_us = {1000, 1010, 1040, 1100};
    const std::vector<Level> levels{{10, 10, 100}, {20, 20, 200}, {30, 30, 300}, {40, 40, 400}};
    const Dictated metrics(timed, levels);
    CHECK(metrics["reserved_bytes.mean_by_op"] == 250);
    // 100 for 10 us, 200 for 30, 300 for 60; the last state has no time.
    CHECK(metrics["reserved_bytes.mean_by_time"] == 250);
    CHECK(metrics["requested_bytes.mean_by_time"] == 25);

    CHECK_FALSE(Dictated(script(kFourOps), levels).has("reserved_bytes.mean_by_time"));
}

TEST_CASE("figures at the peak are those of the first op that reached it", "[unit][meter]") {
    const Dictated metrics(script(kFourOps), {{10, 20, 100}, {30, 40, 200}, {10, 100, 200}, {5, 10, 50}});
    CHECK(metrics["internal_fragmentation.at_peak"] == Approx(0.25));
    CHECK(metrics["utilization.at_peak"] == Approx(0.2));
    CHECK(metrics["utilization.peaks"] == Approx(0.5));
}

TEST_CASE("the load is the peak of live bytes rounded to 512", "[unit][meter]") {
    const Dictated metrics(script("a 0 1; a 1 513; f 0; a 2 100"), std::vector<Level>(4, {1, 1, 3072}));
    CHECK(metrics["load_bytes"] == 512 + 1024);
    CHECK(metrics["overhead_over_load"] == Approx(1));
}

TEST_CASE("every metric that is measured is in the catalog, in its order", "[unit][meter]") {
    HostDevice host({});
    LoggedDevice device(host, CostModel::h200());
    const FakePolicy policy(device);
    Trace timed = script(kFourOps);
    timed.time_us = {0, 1, 2, 3};
    Meter meter(timed, policy, device, {});
    for (std::uint32_t i = 0; i < 4; ++i)
        meter.observe({i, i, timed.events[i].kind(), timed.events[i].buffer(), Placement{0, 512}});
    std::vector<std::string> measured, known;
    for (const Metric& metric : meter.metrics()) measured.push_back(metric.key);
    for (const MetricInfo& info : metric_catalog()) known.push_back(info.key);
    CHECK(measured == known);
    CHECK(std::set(known.begin(), known.end()).size() == known.size());
}

TEST_CASE("the catalog knows type and meaning of what is measured", "[unit][meter]") {
    HostDevice host({});
    LoggedDevice device(host, CostModel::h200());
    const FakePolicy policy(device);
    const Trace trace = script(kFourOps);
    for (const Metric& metric : Meter(trace, policy, device, {}).metrics()) {
        CAPTURE(metric.key);
        const MetricInfo* info = find_metric(metric.key);
        REQUIRE(info);
        const bool whole = std::holds_alternative<std::int64_t>(metric.value);
        CHECK(whole == (info->unit == Unit::bytes || info->unit == Unit::count));
    }
    CHECK(find_metric("no such metric") == nullptr);
}
