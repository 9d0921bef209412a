// Striking boxes out of a grid.
#include <random>
#include <set>

#include "lib/study/cover.hpp"
#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

std::set<GridPoint> points_of(const std::vector<Box>& boxes) {
    std::set<GridPoint> points;
    for (const Box& box : boxes)
        for (std::int64_t x = box.low[0]; x <= box.high[0]; ++x)
            for (std::int64_t y = box.low[1]; y <= box.high[1]; ++y) CHECK(points.insert({x, y}).second);
    return points;
}

Box random_box(std::mt19937& random, std::int64_t end) {
    const auto draw = [&] { return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(end)); };
    const std::int64_t a = draw(), b = draw(), c = draw(), d = draw();
    return {{std::min(a, b), std::min(c, d)}, {std::max(a, b), std::max(c, d)}};
}

}  // namespace

TEST_CASE("a box without another is every point that is not in both, once", "[unit][cover]") {
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) {
        const Box from = random_box(random, 9), hole = random_box(random, 9);
        std::set<GridPoint> expected;
        for (const GridPoint& point : points_of({from}))
            if (!hole.contains(point)) expected.insert(point);
        CHECK(points_of(difference(from, hole)) == expected);
    }
}

TEST_CASE("a search ends when every point is decided, with fewer runs than points", "[unit][cover]") {
    // The outcome changes at these places only.
    const auto cell = [](std::int64_t v, std::initializer_list<std::int64_t> cuts) {
        std::int64_t low = 0, high = 99;
        for (const std::int64_t cut : cuts) (v >= cut ? low : high) = v >= cut ? cut : std::min(high, cut - 1);
        return std::pair(low, high);
    };
    int runs = 0;
    std::set<GridPoint> tried;
    const Cover all = cover(
        {{0, 0}, {99, 99}},
        [&](const std::vector<GridPoint>& points) {
            std::vector<Box> boxes;
            for (const GridPoint& point : points) {
                ++runs;
                CHECK(tried.insert(point).second);
                const auto [x0, x1] = cell(point[0], {13, 14, 60});
                const auto [y0, y1] = cell(point[1], {97});
                boxes.push_back({{x0, y0}, {x1, y1}});
            }
            return boxes;
        },
        [] { return true; });
    CHECK(all.complete);
    CHECK(all.points == 10000);
    CHECK(all.covered == 10000);
    CHECK(runs >= 8);
    CHECK(runs <= 60);
}

TEST_CASE("a search that cannot be afforded says how much it has decided", "[unit][cover]") {
    int batches = 0;
    const Cover part = cover(
        {{0}, {999}},
        [](const std::vector<GridPoint>& points) {
            std::vector<Box> boxes;
            for (const GridPoint& point : points) boxes.push_back({point, point});
            return boxes;
        },
        [&] { return batches++ < 3; });
    CHECK_FALSE(part.complete);
    CHECK(part.covered < 30);
    CHECK(part.covered >= 3);
}
