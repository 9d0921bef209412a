#include "lib/device/cost_model.hpp"

#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

const CostCurve kMalloc{CostPoint{2 * kMiB, 100, 300}, CostPoint{4 * kMiB, 200, 400}, CostPoint{8 * kMiB, 1000, 2000}};
const CostCurve kFree{CostPoint{2 * kMiB, 7, 7}};
const CostCurve kFlat{CostPoint{2 * kMiB, 10, 10}, CostPoint{4 * kMiB, 20, 20}};
const CostCurve kMap{CostPoint{2 * kMiB, 1, 1}, CostPoint{4 * kMiB, 3, 3}};
const CostModel kModel({.malloc = kMalloc,
    .free = kFree,
    .reserve = kFlat,
    .unreserve = kFlat,
    .create = kFlat,
    .map = kMap,
    .set_access = kFlat,
    .unmap = kMap,
    .release = kFlat,
    .pool_grow = kFlat,
    .access_page_ns = 7,
    .pool_hit_ns = 1,
    .pool_free_ns = 2,
    .pool_move_ns = 3,
    .record_ns = 4,
    .wait_ns = 5,
    .synchronize_ns = 6});

double malloc_ns(Bytes bytes, std::int64_t live) { return kModel.malloc_ns(bytes, live); }

}  // namespace

TEST_CASE("at a measured size a call costs what was measured", "[unit][cost]") {
    CHECK(malloc_ns(2 * kMiB, 0) == Approx(100));
    CHECK(malloc_ns(4 * kMiB, 0) == Approx(200));
    CHECK(malloc_ns(8 * kMiB, 0) == Approx(1000));
    CHECK(malloc_ns(8 * kMiB, 100) == Approx(2000));
}

TEST_CASE("between measured sizes the cost is on a straight line", "[unit][cost]") {
    CHECK(malloc_ns(3 * kMiB, 0) == Approx(150));
    CHECK(malloc_ns(5 * kMiB, 0) == Approx(400));
    CHECK(malloc_ns(5 * kMiB, 100) == Approx(800));
}

TEST_CASE("live allocations make calls dearer up to a hundred of them", "[unit][cost]") {
    CHECK(malloc_ns(2 * kMiB, 50) == Approx(200));
    CHECK(malloc_ns(2 * kMiB, 100) == Approx(300));
    CHECK(malloc_ns(2 * kMiB, 1000) == Approx(300));
}

TEST_CASE(
    "below the smallest size nothing gets cheaper, above the largest the cost grows in proportion", "[unit][cost]") {
    CHECK(malloc_ns(1, 0) == Approx(100));
    CHECK(malloc_ns(16 * kMiB, 0) == Approx(2000));
    CHECK(kModel.free_ns(6 * kMiB, 0) == Approx(21));
}

TEST_CASE("mapping costs a create and a map for each page, and a grant of access for the first and the others",
    "[unit][cost]") {
    CHECK(kModel.map_ns(4 * kMiB, 2 * kMiB) == Approx(2 * (10 + 1) + 10 + 7));
    CHECK(kModel.map_ns(4 * kMiB, 4 * kMiB) == Approx(20 + 3 + 20));
    CHECK(kModel.unmap_ns(4 * kMiB, 2 * kMiB) == Approx(2 * (1 + 10)));
}

TEST_CASE("memory that is there already is mapped without being created", "[unit][cost]") {
    CHECK(kModel.alias_ns(4 * kMiB, 2 * kMiB) == Approx(2 * 1 + 10 + 7));
    CHECK(kModel.unalias_ns(4 * kMiB, 2 * kMiB) == Approx(2 * 1));
    CHECK(kModel.move_ns(2 * kMiB) == Approx(1 + 1 + 10));
}

TEST_CASE("reserving more than was measured costs what the most that was measured does", "[unit][cost]") {
    CHECK(kModel.reserve_ns(3 * kMiB) == Approx(15));
    CHECK(kModel.reserve_ns(100 * kGiB) == Approx(20));
    CHECK(kModel.unreserve_ns(100 * kGiB) == Approx(20));
}

TEST_CASE("the bundled profile knows the measured medians", "[unit][cost]") {
    CHECK(CostModel::h200().malloc_ns(20 * kMiB, 0) == Approx(55'016));
    CHECK(CostModel::h200().free_ns(kGiB, 0) == Approx(658'270));
    double last = 0;
    for (Bytes bytes = 2 * kMiB; bytes <= 64 * kGiB; bytes *= 2) {
        const double cost = CostModel::h200().malloc_ns(bytes, 0);
        CHECK(cost >= 0.99 * last);  // as measured
        last = cost;
    }
}
