#include "lib/metrics/latency.hpp"

#include <numeric>

#include "tests/support/catch.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

TEST_CASE("a latency summary is by nearest rank over all values", "[unit][latency]") {
    std::vector<std::int64_t> values(1000);
    std::iota(values.rbegin(), values.rend(), 1);  // 1000 down to 1
    const LatencySummary summary = summarize(values);
    CHECK(summary.count == 1000);
    CHECK(summary.min == 1);
    CHECK(summary.p50 == 500);
    CHECK(summary.p90 == 900);
    CHECK(summary.p99 == 990);
    CHECK(summary.p999 == 999);
    CHECK(summary.max == 1000);
    CHECK(summary.total == 500'500);
    CHECK(summarize({}).count == 0);
    CHECK(summarize({7}).p999 == 7);
}

TEST_CASE("operations are told apart by how they were served", "[unit][latency]") {
    // 12 MiB grow the pool, a second request of the size is a hit, and 90 MiB fit only after the cache was given back.
    const Trace trace = script("a 0 12M; f 0; a 1 12M; f 1; a 2 90M; f 2; e");
    HostDevice host({.capacity = 100 * kMiB});
    LoggedDevice device(host, CostModel::h200(), LoggedDevice::Timing::measured);
    const auto caching = policy("caching")({device, {}, {}});
    LatencyMeter meter;
    meter.begin(device, caching->stats(), trace.ops);
    ReplayObserver* const observers[] = {&meter};
    replay(trace, *caching, device, observers, {.before = observers});
    meter.end();
    const LatencyReport report = meter.report();
    const auto count = [&](OpClass op_class) { return report.ops[static_cast<std::size_t>(op_class)].all.count; };
    CHECK(count(OpClass::alloc_growth) == 1);
    CHECK(count(OpClass::alloc_hit) == 1);
    CHECK(count(OpClass::alloc_retry) == 1);
    CHECK(count(OpClass::free_kept) == 3);
    CHECK(count(OpClass::other) == 1);
    REQUIRE(report.calls.size() == 2);
    CHECK(report.calls[0].kind == DriverCallKind::malloc);
    CHECK(report.calls[0].measured.count == 3);  // the refused one, too
    CHECK(report.calls[0].modelled_ns > 0);
    CHECK(report.repetition_ns.size() == 1);
    CHECK(report.repetition_own_ns.front() <= report.repetition_ns.front());
    CHECK(report.a_a_noise() == 0);
}
