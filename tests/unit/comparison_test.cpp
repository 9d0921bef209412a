#include "lib/study/comparison.hpp"

#include <cmath>

#include "lib/core/error.hpp"
#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

constexpr const char* kReserved = "reserved_bytes.all.peak";

Metric whole(const char* key, std::int64_t value) { return {key, value}; }
Metric real(const char* key, double value) { return {key, value}; }

RunFigures with(std::vector<Metric> metrics) {
    RunFigures figures;
    figures.metrics = std::move(metrics);
    return figures;
}

// The only difference.
Difference between(const Metric& baseline, const Metric& candidate, const Tolerances& tolerances = {}) {
    const auto differences = compare_figures(with({baseline}), with({candidate}), tolerances);
    REQUIRE(differences.size() == 1);
    CHECK((!differences[0].change || std::isfinite(*differences[0].change)));
    return differences[0];
}

Difference reserved(std::int64_t baseline, std::int64_t candidate, const char* tolerance = nullptr) {
    Tolerances tolerances;
    if (tolerance) tolerances.emplace_back(kReserved, tolerance);
    return between(whole(kReserved, baseline), whole(kReserved, candidate), tolerances);
}

bool refused(const char* key, const char* text) {
    try {
        check_tolerance(key, text);
    } catch (const Error& error) {
        return error.code() == ErrorCode::usage && !error.hint().empty();
    }
    return false;
}

}  // namespace

TEST_CASE("equal figures are no difference", "[unit][comparison]") {
    CHECK(compare_figures(with({whole(kReserved, 7)}), with({whole(kReserved, 7)})).empty());
    CHECK(compare_figures(with({}), with({})).empty());
}

TEST_CASE("the catalog says which direction is better", "[unit][comparison]") {
    CHECK(reserved(100, 101).verdict == Judgement::worse);
    CHECK(reserved(100, 99).verdict == Judgement::better);
    CHECK(between(whole("num_hits", 5), whole("num_hits", 4)).verdict == Judgement::worse);
    CHECK(between(whole("num_hits", 5), whole("num_hits", 6)).verdict == Judgement::better);
    CHECK(between(whole("load_bytes", 5), whole("load_bytes", 4)).verdict == Judgement::changed);
}

TEST_CASE("worse and changed are regressions, better is an improvement", "[unit][comparison]") {
    CHECK(reserved(100, 101).regression());
    CHECK_FALSE(reserved(100, 101).improvement());
    CHECK(reserved(100, 99).improvement());
    CHECK_FALSE(reserved(100, 99).regression());
    CHECK(between(whole("load_bytes", 5), whole("load_bytes", 4)).regression());
}

TEST_CASE("the change is relative to the baseline, and there is none from zero", "[unit][comparison]") {
    CHECK(reserved(200, 250).change == 0.25);
    CHECK(reserved(200, 150).change == -0.25);
    CHECK_FALSE(reserved(0, 150).change);
    CHECK(reserved(0, 150).verdict == Judgement::worse);
    CHECK(reserved(150, 0).change == -1);
}

TEST_CASE("a tolerance is an amount or a part of the baseline", "[unit][comparison]") {
    CHECK(reserved(1000, 1010).regression());
    CHECK_FALSE(reserved(1000, 1010, "1%").regression());
    CHECK(reserved(1000, 1011, "1%").regression());
    CHECK_FALSE(reserved(1000, 1010, "10").regression());
    CHECK(reserved(1000, 1011, "10").regression());
    CHECK_FALSE(reserved(0, 2 * kMiB, "2MiB").regression());
    CHECK(reserved(0, 1, "50%").regression());  // of nothing
    CHECK_FALSE(reserved(1000, 995, "1%").improvement());
    const Tolerances ratio{{"overhead_over_load", "0.01"}};
    CHECK_FALSE(between(real("overhead_over_load", 0.5), real("overhead_over_load", 0.505), ratio).regression());
    CHECK(between(real("overhead_over_load", 0.5), real("overhead_over_load", 0.515), ratio).regression());
}

TEST_CASE("a tolerance of one metric is none of another", "[unit][comparison]") {
    const Tolerances other{{"num_ooms", "100%"}};
    CHECK(between(whole(kReserved, 100), whole(kReserved, 101), other).regression());
}

TEST_CASE("what is no tolerance is refused", "[unit][comparison]") {
    CHECK(refused(kReserved, ""));
    CHECK(refused(kReserved, "%"));
    CHECK(refused(kReserved, "-1%"));
    CHECK(refused(kReserved, "nan%"));
    CHECK(refused(kReserved, "1%%"));
    CHECK(refused(kReserved, "2G"));
    CHECK(refused("num_ooms", "1MiB"));
    CHECK(refused("no_such_metric", "1%"));
    CHECK(refused("reserved_bytes.all.paek", "1%"));
    CHECK_FALSE(refused(kReserved, "1.5MiB"));
    CHECK_FALSE(refused("num_ooms", "3"));
}

TEST_CASE("ratios are compared to nine digits, integers to the last", "[unit][comparison]") {
    const auto ratio = [](double value) { return with({real("utilization.at_peak", value)}); };
    CHECK(compare_figures(ratio(0.5), ratio(0.5 + 1e-11)).empty());
    CHECK(compare_figures(ratio(0.5), ratio(0.5 + 1e-8)).size() == 1);
    CHECK(reserved(std::int64_t{1} << 60, (std::int64_t{1} << 60) + 1).regression());
}

TEST_CASE("a metric that only one side has is told, and is neither better nor worse", "[unit][comparison]") {
    const auto differences = compare_figures(
        with({whole(kReserved, 1), whole("gone", 1)}), with({whole(kReserved, 1), whole("num_hits", 2)}));
    REQUIRE(differences.size() == 2);
    CHECK(differences[0].metric == "gone");
    CHECK_FALSE(differences[0].candidate);
    CHECK(differences[1].metric == "num_hits");
    CHECK_FALSE(differences[1].baseline);
    for (const Difference& difference : differences) {
        CHECK(difference.missing());
        CHECK_FALSE(difference.regression());
        CHECK_FALSE(difference.improvement());
    }
}

TEST_CASE(
    "an out of memory at an op that was served before is a regression, whatever the number", "[unit][comparison]") {
    RunFigures baseline, candidate;
    baseline.ooms = {{10, 1, "capacity"}, {20, 1, "capacity"}};
    candidate.ooms = {{10, 1, "capacity"}, {30, 1, "compaction"}, {40, 1, "compaction"}};
    baseline.oom_count = 2;
    candidate.oom_count = 3;
    auto differences = compare_figures(baseline, candidate);
    REQUIRE(differences.size() == 1);
    CHECK(differences[0].metric == kNewOoms);
    CHECK(std::get<std::int64_t>(differences[0].candidate->value) == 2);
    CHECK(differences[0].began->first == 30);
    CHECK(differences[0].regression());
    CHECK(compare_figures(baseline, baseline).empty());
    // A baseline that does not list all cannot say so of what comes after its last one.
    baseline.oom_count = 7;
    CHECK(compare_figures(baseline, candidate).empty());
    candidate.ooms.insert(candidate.ooms.begin(), {5, 1, "capacity"});
    differences = compare_figures(baseline, candidate);
    REQUIRE(differences.size() == 1);
    CHECK(differences[0].began->first == 5);
    CHECK_FALSE(compare_figures(baseline, candidate, {{"num_ooms", "1"}})[0].regression());
}

TEST_CASE("what failed before is known in any order", "[unit][comparison]") {
    RunFigures baseline, candidate;
    baseline.ooms = {{20, 1, "capacity"}, {10, 1, "capacity"}};
    baseline.oom_count = 7;
    candidate.ooms = {{10, 1, "capacity"}, {15, 1, "capacity"}, {20, 1, "capacity"}};
    candidate.oom_count = 3;
    const auto differences = compare_figures(baseline, candidate);
    REQUIRE(differences.size() == 1);
    CHECK(differences[0].began->first == 15);
}

TEST_CASE("a recorded failure that was served and no longer is, is a regression", "[unit][comparison]") {
    RunFigures baseline, candidate;
    baseline.recorded_ooms = {{100, 5, true}, {200, 5, false}, {300, 5, true}};
    candidate.recorded_ooms = {{100, 5, true}, {200, 5, true}, {300, 5, false}};
    const auto differences = compare_figures(baseline, candidate);
    REQUIRE(differences.size() == 2);
    CHECK(differences[0].metric == kNewlyRefused);
    CHECK(differences[0].regression());
    CHECK(differences[0].began->first == 300);
    CHECK(differences[1].metric == kNewlyServed);
    CHECK(differences[1].improvement());
}

TEST_CASE("modelled times are judged only when asked for", "[unit][comparison]") {
    CHECK_FALSE(is_judged("driver_time_ns", false));
    CHECK(is_judged("driver_time_ns", true));
    CHECK(is_judged(kReserved, false));
    CHECK(is_judged("load_bytes", false));
    CHECK_FALSE(is_judged("num_splits", false));
    CHECK_FALSE(is_judged("no_such_metric", true));
}

TEST_CASE("a run with one regression is no improvement, whatever else got better", "[unit][comparison]") {
    ComparedRun run;
    run.differences = {reserved(2, 1)};
    CHECK(run.improvement());
    run.differences.push_back(between(whole("num_misses", 1), whole("num_misses", 2)));
    CHECK(run.regression());
    CHECK_FALSE(run.improvement());
}
