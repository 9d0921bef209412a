// Offline packing on random items: plans that hold, bounds, and the search against brute force.
#include <rapidcheck.h>

#include <fmt/format.h>

#include <numeric>

#include "policies/planner/packing.hpp"
#include "policies/planner/search.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/plan_check.hpp"

using namespace fragsim;
using namespace fragsim::planner;
using namespace fragsim::test;

namespace fragsim::planner {

std::ostream& operator<<(std::ostream& out, const Item& item) {
    return out << '{' << item.begin << ", " << item.end << ", " << item.bytes << '}';
}

}  // namespace fragsim::planner

namespace {

constexpr Algorithm kAll[] = {Algorithm::automatic, Algorithm::greedy_size, Algorithm::greedy_size_best,
    Algorithm::greedy_start, Algorithm::greedy_area, Algorithm::greedy_contention, Algorithm::layered,
    Algorithm::exact};

// Few distinct times and sizes, so that ties and exact fits are common. Small inputs draw from all of them, too.
rc::Gen<std::vector<Item>> some_items(std::size_t most, std::uint32_t times, Bytes sizes) {
    const auto item = rc::gen::map(
        rc::gen::tuple(rc::gen::inRange(0u, times), rc::gen::inRange(0u, times), rc::gen::inRange<Bytes>(1, sizes)),
        [](const std::tuple<std::uint32_t, std::uint32_t, Bytes>& t) {
            const auto [a, b, bytes] = t;
            return Item{std::min(a, b), std::max(a, b), bytes};
        });
    const auto count = rc::gen::inRange<std::size_t>(0, most + 1);
    return rc::gen::resize(rc::kNominalSize,
        rc::gen::mapcat(count, [item](std::size_t n) { return rc::gen::container<std::vector<Item>>(n, item); }));
}

std::vector<Item> at_least_an_instant(std::vector<Item> items) {
    for (Item& item : items) item.end = std::max(item.end, item.begin + 1);
    return items;
}

void check_items(
    int cases, const rc::Gen<std::vector<Item>>& items, const std::function<void(const std::vector<Item>&)>& property) {
    rc::detail::TestParams params;
    params.seed = 1;
    params.maxSuccess = cases;
    const auto result = rc::detail::checkTestable([&] { property(*items); }, rc::detail::TestMetadata{}, params);
    std::ostringstream said;
    rc::detail::printResultMessage(result, said);
    INFO(said.str());
    CHECK(result.is<rc::detail::SuccessResult>());
}

// The lowest place for each item in turn, by definition: at 0 or on top of one placed before.
Bytes plain_greedy(const std::vector<Item>& items, const std::vector<std::size_t>& order, std::vector<Bytes>& offsets) {
    Bytes height = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
        const Item& item = items[order[k]];
        Bytes lowest = std::numeric_limits<Bytes>::max();
        for (std::size_t from = 0; from <= k; ++from) {
            const Bytes at = from == k ? 0 : offsets[order[from]] + items[order[from]].bytes;
            bool free = true;
            for (std::size_t j = 0; j < k; ++j) {
                const Item& other = items[order[j]];
                free &= !alive_together(item, other) || at + item.bytes <= offsets[order[j]] ||
                        offsets[order[j]] + other.bytes <= at;
            }
            if (free) lowest = std::min(lowest, at);
        }
        offsets[order[k]] = lowest;
        height = std::max(height, lowest + item.bytes);
    }
    return height;
}

// Some order of lowest places gives the least height.
Bytes least_height(const std::vector<Item>& items) {
    std::vector<std::size_t> order(items.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<Bytes> offsets(items.size());
    Bytes least = std::numeric_limits<Bytes>::max();
    do least = std::min(least, plain_greedy(items, order, offsets));
    while (std::next_permutation(order.begin(), order.end()));
    return least;
}

}  // namespace

TEST_CASE("every algorithm's plan holds, with and without a capacity", "[property][planner]") {
    check_items(60, some_items(50, 30, 20), [](const std::vector<Item>& items) {
        const Bytes needed = load(items);
        RC_ASSERT(needed == plain_load(items));
        for (const Algorithm algorithm : kAll) {
            const Plan plan = pack(items, algorithm, {std::nullopt, 300});
            const std::string faults = describe(check_plan(items, plan));
            if (!faults.empty()) RC_FAIL(faults);
            RC_ASSERT(plan.left_out == 0u);
            for (const Bytes capacity : {needed, needed / 2 + 1, Bytes{7}}) {
                const Plan bounded = pack(items, algorithm, {capacity, 300});
                const std::string bounded_faults = describe(check_plan(items, bounded, capacity));
                if (!bounded_faults.empty()) RC_FAIL(bounded_faults);
                if (plan.height <= capacity) RC_ASSERT(bounded.offsets == plan.offsets);
            }
        }
    });
}

TEST_CASE("the search finds the least height, as brute force does", "[property][planner]") {
    int searched = 0;
    check_items(600, some_items(7, 8, 6), [&](const std::vector<Item>& items) {
        const Bytes least = items.empty() ? 0 : least_height(items);
        for (const Algorithm algorithm : {Algorithm::exact, Algorithm::automatic}) {
            const Plan plan = pack(items, algorithm);
            RC_ASSERT(plan.height == least);
            RC_ASSERT(plan.optimal);
        }
        // The same from a poor start, without the orders and reductions that mostly leave it nothing to do.
        const std::vector<Item> lasting = at_least_an_instant(items);
        const Problem problem{lasting, sections_of(lasting), kNoLimit, load(lasting)};
        const Plan start = place(problem, by_start(problem));
        std::int64_t nodes = 100'000;
        const Plan plan = Search(problem, start).run(nodes);
        RC_ASSERT(plan.height == least);
        RC_ASSERT(plan.optimal);
        RC_ASSERT(describe(check_plan(items, plan)) == "");
        searched += !start.optimal;
    });
    CHECK(searched > 50);
}

TEST_CASE("largest first is largest first by definition", "[property][planner]") {
    check_items(300, some_items(60, 30, 20), [](const std::vector<Item>& items) {
        std::vector<std::size_t> order(items.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(
            order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return items[a].bytes > items[b].bytes; });
        std::vector<Bytes> offsets(items.size());
        plain_greedy(items, order, offsets);
        RC_ASSERT(pack(items, Algorithm::greedy_size).offsets == offsets);
    });
}

TEST_CASE("fourteen items are packed to a proven height within the default budget", "[property][planner]") {
    check_items(300, some_items(14, 14, 9), [](const std::vector<Item>& items) {
        const std::vector<Item> lasting = at_least_an_instant(items);
        const Problem problem{lasting, sections_of(lasting), kNoLimit, load(lasting)};
        std::int64_t nodes = PackOptions{}.exact_nodes;
        const Plan plan = Search(problem, place(problem, by_start(problem))).run(nodes);
        RC_ASSERT(describe(check_plan(items, plan)) == "");
        RC_ASSERT(plan.optimal);
        RC_ASSERT(pack(items, Algorithm::exact).height == plan.height);
    });
}

TEST_CASE("plans do not depend on when or how fast time runs, nor on the unit of bytes", "[property][planner]") {
    check_items(100, some_items(40, 20, 20), [](const std::vector<Item>& items) {
        std::vector<Item> other = items;
        for (Item& item : other)
            item = {1000 + 8 * item.begin, 1000 + 8 * std::max(item.end, item.begin + 1), item.bytes * 512};
        for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::greedy_size, Algorithm::layered}) {
            const Plan a = pack(items, algorithm, {std::nullopt, 300}), b = pack(other, algorithm, {std::nullopt, 300});
            RC_ASSERT(b.height == a.height * 512);
        }
    });
}
