#include "lib/study/outlier.hpp"

#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

TraceSummary program(Bytes peak, std::int64_t streams = 1, int log2 = 20) {
    TraceSummary summary;
    summary.requested_peak = peak;
    summary.streams = streams;
    summary.allocs = 100;
    summary.requested_by_log2[static_cast<std::size_t>(log2)] = 100 * kMiB;
    return summary;
}

}  // namespace

TEST_CASE("ranks that do the same have no outlier", "[unit][outlier]") {
    CHECK_FALSE(find_outlier({10, 10.2, 9.9, 10}, std::vector<TraceSummary>(4, program(kGiB))));
    CHECK_FALSE(find_outlier({10}, {program(kGiB)}));
    CHECK_FALSE(find_outlier({}, {}));
}

TEST_CASE(
    "the rank farthest from the median is the outlier, with what is different about its program", "[unit][outlier]") {
    const auto outlier =
        find_outlier({10, 15, 10, 10.1}, {program(kGiB), program(2 * kGiB, 3, 25), program(kGiB), program(kGiB)});
    REQUIRE(outlier);
    CHECK(outlier->index == 1);
    CHECK(outlier->difference == Approx(0.5));
    REQUIRE(outlier->reasons.size() == 3);
    CHECK(outlier->reasons[0].find("its own peak: 2.00 GiB live against 1.00 GiB (+100.0 %)") == 0);
    CHECK(outlier->reasons[1].find("more streams: 3 against 1") == 0);
    CHECK(outlier->reasons[2].find("its own size mix: 100 %") == 0);
}

TEST_CASE("of two ranks the larger is the outlier; the same program needs no reason", "[unit][outlier]") {
    const auto outlier = find_outlier({12, 10}, {program(kGiB), program(kGiB)});
    REQUIRE(outlier);
    CHECK(outlier->index == 0);
    CHECK(outlier->reasons.empty());
}
