// Offline packing: the worked examples OP1 to OP5 of spec/policies.md, section 8, and cases made by hand.
#include "policies/planner/packing.hpp"

#include "policies/planner/exact.hpp"
#include "policies/planner/layers.hpp"
#include "policies/planner/occupancy.hpp"
#include "policies/planner/search.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/plan_check.hpp"

using namespace fragsim;
using namespace fragsim::planner;
using namespace fragsim::test;

namespace {

using Items = std::vector<Item>;

const Items kOp1{{0, 3, 4}, {3, 9, 4}, {0, 9, 4}, {9, 21, 4}, {0, 21, 4}};
const Items kOp2{{4, 7, 3}, {1, 5, 2}, {0, 3, 2}, {4, 8, 3}};
const Items kOp3{{2, 3, 4}, {3, 6, 2}, {3, 6, 3}, {1, 5, 4}};
const Items kOp4{{3, 6, 3}, {0, 1, 1}, {0, 3, 1}, {0, 3, 2}, {0, 4, 3}, {2, 5, 4}};
const Items kOp5{
    {0, 1, 3}, {0, 2, 2}, {1, 3, 1}, {1, 3, 1}, {1, 4, 1}, {2, 3, 1}, {2, 5, 1}, {3, 6, 3}, {4, 5, 1}, {5, 6, 2}};

constexpr Algorithm kAll[] = {Algorithm::automatic, Algorithm::greedy_size, Algorithm::greedy_size_best,
    Algorithm::greedy_start, Algorithm::greedy_area, Algorithm::greedy_contention, Algorithm::layered,
    Algorithm::exact};

Bytes height(const Items& items, Algorithm algorithm) {
    const Plan plan = pack(items, algorithm);
    CHECK(describe(check_plan(items, plan)) == "");
    CHECK(plan.left_out == 0);
    return plan.height;
}

std::vector<PlanFault> faults(const Items& items, const Plan& plan, std::optional<Bytes> capacity = {}) {
    std::vector<PlanFault> out;
    for (const PlanFinding& finding : check_plan(items, plan, capacity)) out.push_back(finding.fault);
    return out;
}
Plan plan_of(std::vector<Bytes> offsets, Bytes plan_height, std::uint32_t left_out = 0) {
    return {std::move(offsets), plan_height, left_out, false};
}

}  // namespace

TEST_CASE("OP1: largest first reaches the load", "[unit][planner]") {
    CHECK(load(kOp1) == 12);
    CHECK(height(kOp1, Algorithm::greedy_size) == 12);
}

TEST_CASE("OP2: the order of size is lower than that of start", "[unit][planner]") {
    CHECK(load(kOp2) == 8);
    CHECK(height(kOp2, Algorithm::greedy_size) == 8);
    CHECK(height(kOp2, Algorithm::greedy_start) == 10);
}

TEST_CASE("OP3: the order of area is lower than that of size", "[unit][planner]") {
    CHECK(load(kOp3) == 9);
    CHECK(height(kOp3, Algorithm::greedy_size) == 10);
    CHECK(height(kOp3, Algorithm::greedy_area) == 9);
    CHECK(height(kOp3, Algorithm::exact) == 9);
}

TEST_CASE("OP4: the lowest gap is better than the smallest", "[unit][planner]") {
    CHECK(load(kOp4) == 10);
    CHECK(height(kOp4, Algorithm::greedy_size) == 10);
    CHECK(height(kOp4, Algorithm::greedy_size_best) == 11);
}

TEST_CASE("OP5: the load is out of reach, which the search proves", "[unit][planner]") {
    CHECK(load(kOp5) == 5);
    for (const Algorithm algorithm : {Algorithm::exact, Algorithm::automatic}) {
        const Plan plan = pack(kOp5, algorithm);
        CHECK(describe(check_plan(kOp5, plan)) == "");
        CHECK(plan.height == 6);
        CHECK(plan.optimal);
    }
}

TEST_CASE("the search finds what no order does", "[unit][planner]") {
    const Items items{{3, 8, 6}, {2, 6, 5}, {4, 6, 8}, {4, 9, 6}, {1, 4, 9}, {0, 9, 4}};
    CHECK(load(items) == 29);
    for (const Algorithm algorithm : kAll) {
        const bool searches = algorithm == Algorithm::automatic || algorithm == Algorithm::exact;
        CHECK((height(items, algorithm) == 29) == searches);
    }
}

TEST_CASE("the search goes back where the lowest item is the wrong one to begin with", "[unit][planner]") {
    for (const Items& items : {Items{{0, 1, 1}, {6, 10, 7}, {8, 10, 5}, {0, 2, 8}, {2, 8, 2}, {1, 3, 6}},
             Items{{8, 10, 6}, {6, 8, 7}, {2, 7, 3}, {2, 3, 7}, {4, 10, 6}, {3, 5, 5}, {2, 4, 7}},
             Items{{0, 4, 6}, {1, 2, 8}, {1, 4, 1}, {5, 10, 2}, {3, 8, 1}, {4, 7, 8}, {2, 5, 5}}}) {
        const Problem problem{items, sections_of(items), kNoLimit, load(items)};
        std::int64_t nodes = 1000;
        const Plan plan = Search(problem, place(problem, by_start(problem))).run(nodes);
        CHECK(describe(check_plan(items, plan)) == "");
        CHECK(plan.height == load(items));
        CHECK(nodes > 0);
    }
}

TEST_CASE("automatic is never above any single order", "[unit][planner]") {
    for (const Items& items : {kOp1, kOp2, kOp3, kOp4, kOp5})
        for (const Algorithm algorithm : kAll)
            CHECK(pack(items, Algorithm::automatic).height <= pack(items, algorithm).height);
}

TEST_CASE("nothing needs nothing, one item its size", "[unit][planner]") {
    for (const Algorithm algorithm : kAll) {
        CHECK(pack(Items{}, algorithm).height == 0);
        CHECK(height({{3, 5, 512}}, algorithm) == 512);
    }
    CHECK(load(Items{}) == 0);
}

TEST_CASE("lifespans are half-open: what ends as another begins leaves it its place", "[unit][planner]") {
    for (const Algorithm algorithm : kAll) CHECK(height({{0, 5, 8}, {5, 9, 8}, {9, 10, 8}}, algorithm) == 8);
}

TEST_CASE("an empty lifespan counts as one instant", "[unit][planner]") {
    for (const Algorithm algorithm : kAll) {
        CHECK(height({{0, 9, 8}, {4, 4, 8}, {4, 4, 8}, {5, 5, 8}}, algorithm) == 24);
        CHECK(height({{4, 4, 8}, {0, 4, 8}, {5, 9, 8}}, algorithm) == 8);
    }
}

TEST_CASE("equal items are placed in the order of their index", "[unit][planner]") {
    for (const Algorithm algorithm : {Algorithm::greedy_size, Algorithm::greedy_size_best, Algorithm::greedy_start,
             Algorithm::greedy_area, Algorithm::greedy_contention, Algorithm::layered})
        CHECK(pack(Items{{0, 2, 4}, {0, 2, 4}, {0, 2, 4}}, algorithm).offsets == std::vector<Bytes>{0, 4, 8});
}

TEST_CASE("gaps: the lowest that is large enough, or the smallest", "[unit][planner]") {
    // [0,8) free, [8,10) taken, [10,14) free, [14,16) taken; all in the section in the middle.
    const auto occupied = [] {
        Occupancy occupancy(3);
        occupancy.take({0, 3}, 8, 10);
        occupancy.take({1, 2}, 14, 16);
        occupancy.take({2, 3}, 0, 8);
        return occupancy;
    };
    constexpr Bytes kFar = 1000;
    Occupancy occupancy = occupied();
    CHECK(occupancy.first_gap({1, 2}, 4, kFar) == 0);
    CHECK(occupancy.best_gap({1, 2}, 4, kFar) == 10);
    CHECK(occupancy.best_gap({1, 2}, 5, kFar) == 0);
    CHECK(occupancy.first_gap({1, 2}, 9, kFar) == 16);
    CHECK(occupancy.best_gap({1, 2}, 9, kFar) == 16);
    CHECK(occupancy.first_gap({2, 3}, 1, kFar) == 10);
    CHECK(occupancy.first_gap({0, 3}, 4, kFar) == 10);
    CHECK(occupancy.first_gap({0, 3}, 5, kFar) == 16);
    CHECK_FALSE(occupancy.first_gap({0, 3}, 5, 20));
    CHECK(occupancy.first_gap({0, 3}, 5, 21) == 16);
    CHECK_FALSE(occupancy.best_gap({0, 3}, 5, 20));
    CHECK_FALSE(occupancy.best_gap({1, 2}, 9, 8));
    // Where the smallest gap is above the limit, a larger one below it will do.
    CHECK(occupancy.best_gap({1, 2}, 4, 13) == 0);
}

TEST_CASE("layers: chains of one size, smaller ones in the spare room of larger", "[unit][planner]") {
    // Two chains of 8 (a c, b), then 4s: one beside b's end, one on top.
    const Items items{{0, 4, 8}, {1, 3, 8}, {4, 9, 8}, {3, 9, 4}, {0, 9, 4}};
    const Plan plan = pack(items, Algorithm::layered);
    CHECK(describe(check_plan(items, plan)) == "");
    CHECK(plan.offsets == std::vector<Bytes>{0, 8, 0, 8, 16});
    CHECK(plan.height == 20);
}

TEST_CASE("layers: of the chains that have ended, the one that ended last goes on", "[unit][planner]") {
    const Plan plan = pack(Items{{0, 2, 4}, {0, 4, 4}, {5, 9, 4}}, Algorithm::layered);
    CHECK(plan.offsets == std::vector<Bytes>{0, 4, 4});
}

TEST_CASE("what does not fit below the capacity is left out and the rest go on", "[unit][planner]") {
    const Items items{{0, 4, 100}, {1, 4, 300}, {2, 6, 20}, {4, 6, 80}};
    for (const Algorithm algorithm : kAll) {
        const Plan plan = pack(items, algorithm, {200, 1000});
        CHECK(describe(check_plan(items, plan, 200)) == "");
        CHECK(plan.left_out == 1);
        CHECK(plan.offsets[1] == Plan::kLeftOut);
        CHECK_FALSE(plan.optimal);
    }
}

TEST_CASE("automatic leaves out as few as the best order, under a capacity that only search reaches none",
    "[unit][planner]") {
    CHECK(pack(kOp5, Algorithm::automatic, {6, 1000}).left_out == 0);
    CHECK(pack(kOp5, Algorithm::automatic, {5, 1000}).left_out == 1);
    CHECK(pack(kOp2, Algorithm::greedy_start, {8, 1000}).left_out == 1);
    CHECK(pack(kOp2, Algorithm::automatic, {8, 1000}).left_out == 0);
}

TEST_CASE("sizes whose sums would overflow are left out", "[unit][planner]") {
    constexpr Bytes kHuge = (Bytes{1} << 62) - 512;
    const Items items{{0, 4, kHuge}, {0, 4, 512}, {1, 4, kHuge}, {2, 3, kHuge}};
    for (const Algorithm algorithm : kAll) {
        const Plan plan = pack(items, algorithm);
        CHECK(plan.left_out == 3);
        CHECK(plan.height == 512);
    }
    CHECK(load(items) == 512);
}

TEST_CASE("the search stops at its budget with the best plan so far", "[unit][planner]") {
    const Plan plan = pack(kOp5, Algorithm::exact, {std::nullopt, 0});
    CHECK(describe(check_plan(kOp5, plan)) == "");
    Problem problem{kOp5, sections_of(kOp5), kNoLimit, 5};
    CHECK_FALSE(pack_exactly(problem, 1).optimal);
    CHECK(pack_exactly(problem, 100'000).optimal);
}

TEST_CASE("sections: the moments at which most is alive", "[unit][planner]") {
    const Sections sections = sections_of(kOp2);
    CHECK(sections.load == std::vector<Bytes>{4, 8});
    CHECK(sections.of == std::vector<Sections::Range>{{1, 2}, {0, 2}, {0, 1}, {1, 2}});
}

TEST_CASE("the checker of plans has a finding for each way to be wrong", "[unit][planner]") {
    const Items items{{0, 4, 8}, {2, 6, 8}};
    CHECK(faults(items, plan_of({0, 8}, 16)).empty());
    CHECK(faults(items, plan_of({0}, 8)) == std::vector{PlanFault::wrong_count});
    CHECK(faults(items, plan_of({-8, 0}, 8)) == std::vector{PlanFault::below_zero, PlanFault::below_load});
    CHECK(faults(items, plan_of({0, 7}, 15)) == std::vector{PlanFault::overlap, PlanFault::below_load});
    CHECK(faults(items, plan_of({0, 8}, 16), 15) == std::vector{PlanFault::over_capacity});
    CHECK(faults(items, plan_of({0, 8}, 17)) == std::vector{PlanFault::wrong_height});
    CHECK(faults(items, plan_of({0, 8}, 16, 1)) == std::vector{PlanFault::wrong_left_out});
    CHECK(faults(items, plan_of({0, Plan::kLeftOut}, 8)) == std::vector{PlanFault::wrong_left_out});
    CHECK(faults(items, {{0, Plan::kLeftOut}, 8, 1, true}) == std::vector{PlanFault::false_proof});
    CHECK(faults({{0, 4, 8}, {4, 6, 8}}, plan_of({0, 0}, 8)).empty());
    CHECK(faults({{0, 4, 8}, {2, 2, 8}}, plan_of({0, 0}, 8)) == std::vector{PlanFault::overlap, PlanFault::below_load});
}
