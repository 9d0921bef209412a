#include "lib/core/limits.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/refusal.hpp"

using namespace fragsim;
using namespace fragsim::test;

TEST_CASE("a memory limit is a size, or a share of the capacity", "[unit][limits]") {
    CHECK(parse_limits("", "") == Limits{});
    CHECK(parse_limits("none", "none") == Limits{});
    CHECK(parse_limits("24GiB", "") == Limits{24 * kGiB, {}});
    CHECK(parse_limits("", "10GiB") == Limits{{}, 10 * kGiB});
    CHECK(parse_limits("24GiB", "10GiB") == Limits{24 * kGiB, 10 * kGiB});
    CHECK(parse_limits("10GiB", "50%") == Limits{10 * kGiB, 5 * kGiB});
    CHECK(parse_limits("10GiB", "0.5") == Limits{10 * kGiB, 5 * kGiB});
    // set_per_process_memory_fraction(1.0) takes the limit away.
    CHECK(parse_limits("10GiB", "100%") == Limits{10 * kGiB, {}});
    CHECK(parse_limits("10GiB", "1.0") == Limits{10 * kGiB, {}});
}

TEST_CASE("a share of no capacity, of nothing or of more than all is refused", "[unit][limits]") {
    CHECK(refusal([] { parse_limits("", "80%"); }).hints("--capacity"));
    CHECK(refusal([] { parse_limits("none", "0.8"); }).code == ErrorCode::usage);
    for (const char* share : {"0%", "0", "0.0", "120%", "100.1%", "-5%", "80 percent", "nan"})
        CHECK(refusal([&] { parse_limits("10GiB", share); }).code == ErrorCode::usage);
}

TEST_CASE("the bound is the smaller limit", "[unit][limits]") {
    CHECK_FALSE(Limits{}.bound());
    CHECK(Limits{5, {}}.bound() == 5);
    CHECK(Limits{{}, 6}.bound() == 6);
    CHECK(Limits{5, 6}.bound() == 5);
    CHECK(Limits{7, 6}.bound() == 6);
}

TEST_CASE("limits say which of the two they are", "[unit][limits]") {
    CHECK(describe(Limits{}) == "no capacity limit");
    CHECK(describe(Limits{24 * kGiB, {}}) == "capacity 24.0 GiB");
    CHECK(describe(Limits{{}, 8 * kGiB}) == "memory limit 8.00 GiB");
    CHECK(describe(Limits{24 * kGiB, 8 * kGiB}) == "capacity 24.0 GiB, memory limit 8.00 GiB");
}
