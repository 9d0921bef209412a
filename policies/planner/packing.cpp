#include "policies/planner/packing.hpp"

#include <algorithm>
#include <utility>

#include "policies/planner/exact.hpp"
#include "policies/planner/layers.hpp"

namespace fragsim::planner {
namespace {

// Work of `automatic`, as Plan counts it: whatever comes next is tried while all before took less than about two
// seconds; mending takes about a fifth of one, twice. No more rounds than help.
constexpr std::int64_t kOrderWork = 200'000'000, kMendWork = 20'000'000, kMendRounds = 200;
// `automatic` also searches inputs up to this many items, for as many nodes as make a few hundredths of a second.
constexpr std::size_t kMaxSearched = 200;
constexpr std::int64_t kSearchWork = 4'000'000;
// A node looks at every item; beyond this a budget of nodes would say little about the time they take.
constexpr std::size_t kMaxExact = 2'000;

// What can have a place at all, each at least an instant long. The rest is left out from the start, so that the sum of
// all bytes fits into Bytes.
struct Placeable {
    std::vector<Item> items;
    std::vector<std::uint32_t> index;  // of each in the caller's list

    Placeable(std::span<const Item> all, Bytes limit) {
        const Bytes largest = std::min(limit, kNoLimit / static_cast<Bytes>(all.size() + 1));
        for (std::uint32_t i = 0; i < all.size(); ++i) {
            if (all[i].bytes > largest) continue;
            items.push_back({all[i].begin, std::max(all[i].end, all[i].begin + 1), all[i].bytes});
            index.push_back(i);
        }
    }
};

Problem problem_of(const std::vector<Item>& items, Bytes limit) {
    Problem problem{items, sections_of(items), limit, 0};
    for (const Bytes bytes : problem.sections.load) problem.load = std::max(problem.load, bytes);
    return problem;
}

// The best of the orders, the most promising ones mended.
Plan place_best(const Problem& problem) {
    Plan best = place(problem, by_size(problem));
    std::int64_t work = best.work;
    for (Order (*const order_of)(const Problem&) : {by_contention, by_area, by_start}) {
        if (best.optimal || work > kOrderWork) break;
        Plan plan = place(problem, order_of(problem));
        work += plan.work;
        if (is_better(problem, plan, best)) best = std::move(plan);
    }
    for (Weights (*const weights_of)(const Problem&) : {weights_by_size_class, weights_by_size}) {
        if (best.optimal || work > kOrderWork) break;
        Plan plan = place_and_mend(problem, weights_of(problem), kMendRounds, kMendWork);
        work += plan.work;
        if (is_better(problem, plan, best)) best = std::move(plan);
    }
    return best;
}

// A capacity matters only where the plan without one is higher: more of it never makes a plan worse.
Plan place_best_and_search(Problem problem, std::size_t max_searched, std::int64_t nodes) {
    const Bytes limit = std::exchange(problem.limit, kNoLimit);
    Plan plan = place_best(problem);
    if (!plan.optimal && problem.items.size() <= max_searched) {
        Plan found = pack_exactly(problem, nodes);
        if (found.optimal || found.height < plan.height) plan = std::move(found);
    }
    if (plan.height <= limit) return plan;
    problem.limit = limit;
    return place_best(problem);
}

Plan pack_by(const Problem& problem, Algorithm algorithm, std::int64_t exact_nodes) {
    switch (algorithm) {
        case Algorithm::automatic: {
            const auto count = static_cast<std::int64_t>(problem.items.size()) + 1;
            return place_best_and_search(problem, kMaxSearched, kSearchWork / count);
        }
        case Algorithm::exact: return place_best_and_search(problem, kMaxExact, exact_nodes);
        case Algorithm::greedy_size: return place(problem, by_size(problem));
        case Algorithm::greedy_size_best: return place(problem, by_size(problem), Gap::smallest);
        case Algorithm::greedy_start: return place(problem, by_start(problem));
        case Algorithm::greedy_area: return place(problem, by_area(problem));
        case Algorithm::greedy_contention: return place(problem, by_contention(problem));
        case Algorithm::layered: break;
    }
    return place_in_layers(problem);
}

}  // namespace

Plan pack(std::span<const Item> items, Algorithm algorithm, const PackOptions& options) {
    const Bytes limit = std::min(options.capacity.value_or(kNoLimit), kNoLimit);
    const Placeable placeable(items, limit);
    Plan plan = pack_by(problem_of(placeable.items, limit), algorithm, options.exact_nodes);
    if (placeable.items.size() == items.size()) return plan;

    std::vector<Bytes> offsets(items.size(), Plan::kLeftOut);
    for (std::size_t k = 0; k < placeable.index.size(); ++k) offsets[placeable.index[k]] = plan.offsets[k];
    plan.offsets = std::move(offsets);
    plan.left_out += static_cast<std::uint32_t>(items.size() - placeable.items.size());
    plan.optimal = false;
    return plan;
}

Bytes load(std::span<const Item> items) { return problem_of(Placeable(items, kNoLimit).items, kNoLimit).load; }

}  // namespace fragsim::planner
