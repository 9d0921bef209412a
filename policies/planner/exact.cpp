#include "policies/planner/exact.hpp"

#include <algorithm>
#include <numeric>

#include "policies/planner/search.hpp"

namespace fragsim::planner {
namespace {

// To begin the search with a good plan: a round costs as much as a few nodes.
constexpr std::int64_t kMendRounds = 50, kMendWork = 20'000'000;

// Two exact reductions, in turn until neither applies: what is alive throughout goes to the bottom, as any plan can be
// rearranged so; and where nothing lives from one moment to the next, the halves are problems of their own.
class Parts {
public:
    Parts(std::span<const Item> items, std::int64_t nodes) : items_(items), nodes_(nodes), offsets_(items.size()) {}

    // No plan for the items is lower; equal to the height if that one is proven.
    Bytes pack(const Order& part, Bytes bottom) {
        std::vector<Item> items;
        for (const std::uint32_t i : part) items.push_back(items_[i]);
        const Sections sections = sections_of(items);
        Order rest;
        Bytes base = bottom;
        for (std::size_t k = 0; k < part.size(); ++k) {
            if (sections.of[k] != Sections::Range{0, sections.count()}) {
                rest.push_back(part[k]);
                continue;
            }
            offsets_[part[k]] = base;
            base += items[k].bytes;
        }
        if (rest.empty()) return base;
        if (rest.size() < part.size()) return std::max(base, pack(rest, base));

        // First 1 where something lives on from section t - 1 to t, then the number of the part.
        std::vector<std::uint32_t> part_of(sections.count());
        for (const Sections::Range& time : sections.of)
            for (std::uint32_t t = time.first + 1; t < time.last; ++t) part_of[t] = 1;
        std::uint32_t parts = 0;
        for (std::uint32_t& p : part_of) p = p == 0 ? parts++ : parts - 1;
        if (parts == 1) return search(part, items, sections, bottom);
        std::vector<Order> groups(parts);
        for (std::size_t k = 0; k < part.size(); ++k) groups[part_of[sections.of[k].first]].push_back(part[k]);
        Bytes bound = 0;
        for (const Order& group : groups) bound = std::max(bound, pack(group, bottom));
        return bound;
    }

    std::vector<Bytes> take_offsets() { return std::move(offsets_); }

private:
    Bytes search(const Order& part, const std::vector<Item>& items, const Sections& sections, Bytes bottom) {
        Problem problem{items, sections, kNoLimit, *std::max_element(sections.load.begin(), sections.load.end())};
        Plan plan = place_and_mend(problem, weights_by_size(problem), kMendRounds, kMendWork);
        if (!plan.optimal) {
            Plan other = place_and_mend(problem, weights_by_size_class(problem), kMendRounds, kMendWork);
            if (is_better(problem, other, plan)) plan = std::move(other);
        }
        if (!plan.optimal) plan = Search(problem, plan).run(nodes_);
        for (std::size_t k = 0; k < part.size(); ++k) offsets_[part[k]] = bottom + plan.offsets[k];
        return bottom + (plan.optimal ? plan.height : problem.load);
    }

    std::span<const Item> items_;
    std::int64_t nodes_;
    std::vector<Bytes> offsets_;
};

}  // namespace

Plan pack_exactly(const Problem& problem, std::int64_t nodes) {
    Order all(problem.items.size());
    std::iota(all.begin(), all.end(), 0u);
    Parts parts(problem.items, nodes);
    Plan plan;
    plan.optimal = all.empty();
    if (all.empty()) return plan;
    const Bytes bound = parts.pack(all, 0);
    plan.offsets = parts.take_offsets();
    for (std::size_t i = 0; i < plan.offsets.size(); ++i)
        plan.height = std::max(plan.height, plan.offsets[i] + problem.items[i].bytes);
    plan.optimal = plan.height == bound;
    return plan;
}

}  // namespace fragsim::planner
