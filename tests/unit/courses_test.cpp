#include "lib/metrics/courses.hpp"

#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

Course course(std::vector<Course::Point> points) {
    const auto changes = static_cast<std::int64_t>(points.size());
    return {"reserved_bytes.all.peak", changes, std::move(points)};
}

std::string range(const std::optional<OpRange>& ops) {
    return ops ? std::to_string(ops->first) + ".." + std::to_string(ops->last) : "never";
}

// A staircase of `steps` steps, one every ten ops, each one higher.
Course stairs(std::uint32_t steps, std::uint32_t shift = 0) {
    std::vector<Course::Point> points;
    for (std::uint32_t i = 0; i < steps; ++i) points.push_back({10 * i + shift, i + 1});
    return course(points);
}

}  // namespace

TEST_CASE("a regression begins at the first op after which the figure is higher", "[unit][courses]") {
    const Course baseline = course({{5, 10}, {20, 30}});
    CHECK(range(began(baseline, baseline, 0)) == "never");
    CHECK(range(began(baseline, course({{5, 10}, {20, 31}}), 0)) == "20..20");
    CHECK(range(began(baseline, course({{5, 10}, {12, 15}, {20, 30}}), 0)) == "12..12");
    CHECK(range(began(baseline, course({{4, 10}, {20, 30}}), 0)) == "4..4");
    CHECK(range(began(baseline, course({{5, 10}, {20, 30}, {400, 31}}), 0)) == "400..400");
    CHECK(range(began(baseline, course({{6, 10}, {20, 29}}), 0)) == "never");
    CHECK(range(began(course({}), course({{7, 1}}), 0)) == "7..7");
}

TEST_CASE("what is within the allowance is not yet a beginning", "[unit][courses]") {
    const Course baseline = course({{5, 10}, {20, 30}});
    CHECK(range(began(baseline, course({{5, 12}, {20, 40}}), 2)) == "20..20");
    CHECK(range(began(baseline, course({{5, 12}, {20, 32}}), 2)) == "never");
}

TEST_CASE("a thinned course keeps its ends and says that it is thinned", "[unit][courses]") {
    const Course whole = stairs(100), thinned = thin(whole, 8);
    CHECK_FALSE(whole.thinned());
    CHECK(thinned.thinned());
    CHECK(thinned.changes == 100);
    REQUIRE(thinned.points.size() == 8);
    CHECK(thinned.points.front() == whole.points.front());
    CHECK(thinned.points.back() == whole.points.back());
    CHECK(thin(whole, 100).points == whole.points);
}

TEST_CASE("against a thinned course the beginning is between two ops that enclose the true one", "[unit][courses]") {
    for (std::uint32_t from = 0; from < 100; ++from) {
        // From step `from` on the candidate is one higher.
        Course candidate = stairs(100);
        for (std::uint32_t i = from; i < 100; ++i) ++candidate.points[i].value;
        const auto exact = began(stairs(100), candidate, 0);
        REQUIRE(range(exact) == std::to_string(10 * from) + ".." + std::to_string(10 * from));
        const auto enclosed = began(thin(stairs(100), 8), candidate, 0);
        REQUIRE(enclosed);
        CHECK(enclosed->first <= exact->first);
        CHECK(enclosed->last >= exact->first);
        CHECK(enclosed->last - enclosed->first <= 160);  // not wider than the gap it is in
    }
    CHECK(range(began(thin(stairs(100), 8), stairs(100), 0)) == "never");
}

TEST_CASE("the recorder's courses end with the metrics of the same replay", "[unit][courses]") {
    const Trace trace = script("a 0 30M; a 1 5M; f 0; a 2 40M; a 3 80M; f 1; f 2; a 4 60M; e; a 5 1M");
    RunOptions options;
    options.limits.capacity = 128 * kMiB;
    options.record_courses = true;
    const Result result = run_policy(trace, parse_policy_spec("caching", policies()), options);
    REQUIRE(result.courses.size() == 6);
    REQUIRE(result.count("num_ooms") == 1);
    for (const Course& c : result.courses) {
        INFO(c.key);
        CHECK_FALSE(c.thinned());
        CHECK((c.points.empty() ? 0 : c.points.back().value) == result.count(c.key));
        for (std::size_t i = 1; i < c.points.size(); ++i) {
            CHECK(c.points[i].op > c.points[i - 1].op);
            CHECK(c.points[i].value > c.points[i - 1].value);
        }
        if (c.key == "num_ooms") CHECK(c.points.front().op == result.ooms.front().op);
    }
}
