// spec/policies.md, section 11.3, with its example f = 8, 4, 4, 2, 2.
#include "lib/metrics/fragmentation.hpp"

#include "tests/support/catch.hpp"

using namespace fragsim;

TEST_CASE("the example of the specification gives its figures", "[unit][fragmentation]") {
    const FreeSpace free({4, 2, 8, 2, 4});
    CHECK(free.total() == 20);
    CHECK(free.largest() == 8);
    CHECK(free.holes() == 5);
    CHECK(free.median() == 4);
    CHECK(free.external() == Approx(0.6));
    CHECK(free.unusable_index(4) == Approx(0.2));
    CHECK(free.unusable_index(8) == Approx(0.6));
    CHECK(free.unusable_index(9) == Approx(1.0));
    CHECK(free.unusable_index_blocks(4) == Approx(0.2));
    CHECK(free.unusable_index_blocks(3) == Approx(1 - (6 + 3 + 3) / 20.0));
    CHECK(free.fragmentation_index(8) == -1);
    CHECK(free.fragmentation_index(16) == Approx(0.55));
    CHECK(free.l2() == Approx(0.74));
}

TEST_CASE("without free space nothing is fragmented", "[unit][fragmentation]") {
    const FreeSpace none;
    CHECK(none.total() == 0);
    CHECK(none.largest() == 0);
    CHECK(none.median() == 0);
    CHECK(none.external() == 0);
    CHECK(none.unusable_index(512) == 0);
    CHECK(none.unusable_index_blocks(512) == 0);
    CHECK(none.fragmentation_index(512) == 0);
    CHECK(none.l2() == 0);
}

TEST_CASE("one range is not fragmented, many equal ones are", "[unit][fragmentation]") {
    CHECK(FreeSpace({4096}).external() == 0);
    CHECK(FreeSpace({4096}).l2() == 0);
    const FreeSpace many(std::vector<Bytes>(100, 512));
    CHECK(many.external() == Approx(0.99));
    CHECK(many.l2() == Approx(0.99));
    CHECK(many.fragmentation_index(100 * 512) == Approx(0.98));
}
