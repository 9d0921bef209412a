#include "lib/metrics/series.hpp"

#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

Result run(std::string_view calls, RunOptions options) {
    options.record_series = true;
    const Trace trace = script(calls);
    return run_policy(trace, parse_policy_spec("caching", policies()), options);
}

}  // namespace

TEST_CASE("a series has the state after every op", "[unit][series]") {
    const Series series = run("a 0 30M; m hello; a 1 5M-1; f 0", {}).series;
    CHECK(series.requested == std::vector<Bytes>{30 * kMiB, 35 * kMiB - 1, 5 * kMiB - 1});
    CHECK(series.allocated == std::vector<Bytes>{30 * kMiB, 35 * kMiB, 5 * kMiB});
    CHECK(series.active == series.allocated);
    CHECK(series.reserved == std::vector<Bytes>{30 * kMiB, 50 * kMiB, 50 * kMiB});
    CHECK(series.largest_free == std::vector<Bytes>{0, 15 * kMiB, 30 * kMiB});
    CHECK(series.retries.empty());
}

TEST_CASE("an op that does not reach the policy has the state that there is", "[unit][series]") {
    RunOptions options;
    options.limits.capacity = 100 * kMiB;
    const Result result = run("a 0 60M; a 1 60M; f 1; e; a 2 20M", options);
    REQUIRE(result.outcome.ooms == 1);
    CHECK(result.series.reserved == std::vector<Bytes>{60 * kMiB, 60 * kMiB, 60 * kMiB, 80 * kMiB});
    CHECK(result.series.retries == std::vector<std::uint32_t>{1});
    CHECK(result.series.size() == result.outcome.ops);
}

TEST_CASE("what changes between two ops counts from then on", "[unit][series]") {
    RunOptions options;
    options.limits.capacity = 100 * kMiB;
    // The free of what failed is skipped, and shows what the emptied cache left.
    const Series series = run("a 0 60M; a 1 60M; f 0; e; f 1", options).series;
    CHECK(series.reserved == std::vector<Bytes>{60 * kMiB, 60 * kMiB, 60 * kMiB, 0});
}

TEST_CASE("a memory that waits for another stream is active, not allocated", "[unit][series]") {
    const Series series = run("a 0 30M; r 0 7; f 0; a 1 2M; c 0", {}).series;
    CHECK(series.allocated == std::vector<Bytes>{30 * kMiB, 2 * kMiB, 2 * kMiB});
    CHECK(series.active == std::vector<Bytes>{30 * kMiB, 32 * kMiB, 2 * kMiB});
}

TEST_CASE("a replay that stopped has a series as long as it came", "[unit][series]") {
    RunOptions options;
    options.limits.capacity = 50 * kMiB;
    options.on_oom = OnOom::stop;
    CHECK(run("a 0 30M; a 1 30M; f 0", options).series.size() == 2);
}
