#include "lib/report/format.hpp"

#include "tests/support/catch.hpp"

using namespace fragsim;

TEST_CASE("ratios and changes are printed in percent", "[unit][format]") {
    CHECK(format_ratio(0) == "0.0 %");
    CHECK(format_ratio(0.1234) == "12.3 %");
    CHECK(format_ratio(1) == "100.0 %");
    CHECK(format_change(110, 100) == "+10.0 %");
    CHECK(format_change(75, 100) == "-25.0 %");
    CHECK(format_change(100, 100) == "=");
    CHECK(format_change(0, 0) == "=");
    CHECK(format_change(5, 0) == "new");
}

TEST_CASE("durations have three digits and a unit", "[unit][format]") {
    CHECK(format_duration(0) == "0 s");
    CHECK(format_duration(7) == "7.00 ns");
    CHECK(format_duration(999) == "999 ns");
    CHECK(format_duration(999.6) == "1.00 us");
    CHECK(format_duration(12'345) == "12.3 us");
    CHECK(format_duration(1.5e6) == "1.50 ms");
    CHECK(format_duration(2e9) == "2.00 s");
    CHECK(format_duration(5e12) == "5000 s");
}

TEST_CASE("counts are grouped by thousands", "[unit][format]") {
    CHECK(format_count(0) == "0");
    CHECK(format_count(999) == "999");
    CHECK(format_count(1000) == "1,000");
    CHECK(format_count(1234567) == "1,234,567");
    CHECK(format_count(-999) == "-999");
    CHECK(format_count(-1000) == "-1,000");
}

TEST_CASE("a metric is printed by its unit", "[unit][format]") {
    CHECK(format_metric({"reserved_bytes.all.peak", std::int64_t{2 * kMiB}}) == "2.00 MiB");
    CHECK(format_metric({"num_ooms", std::int64_t{1200}}) == "1,200");
    CHECK(format_metric({"johnstone_wilson_4", 1.25}) == "1.2500");
    CHECK(format_metric({"driver_time_ns", 1.5e6}) == "1.50 ms");
}

TEST_CASE("every completeness has a name and a description", "[unit][format]") {
    for (const auto completeness :
        {Completeness::complete, Completeness::mid_run, Completeness::ring_overflowed, Completeness::no_events}) {
        CHECK_FALSE(name(completeness).empty());
        CHECK_FALSE(describe(completeness).empty());
    }
}
