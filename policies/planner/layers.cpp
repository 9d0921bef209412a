#include "policies/planner/layers.hpp"

#include <algorithm>
#include <map>

#include "policies/planner/occupancy.hpp"

namespace fragsim::planner {

Plan place_in_layers(const Problem& problem) {
    Plan plan;
    plan.offsets.assign(problem.items.size(), Plan::kLeftOut);
    Order order = by_start(problem);
    std::stable_sort(order.begin(), order.end(),
        [&](std::uint32_t a, std::uint32_t b) { return problem.items[a].bytes > problem.items[b].bytes; });

    Occupancy occupancy(problem.sections.count());
    std::multimap<std::uint32_t, Bytes> layers;  // of the present size: section in which the last item ends -> offset
    Bytes size = 0, floor = 0, top = 0;          // the present size's layers lie in [floor, top)
    for (const std::uint32_t i : order) {
        const Sections::Range time = problem.sections.of[i];
        if (problem.items[i].bytes != size) {
            size = problem.items[i].bytes;
            floor = top;
            layers.clear();
        }
        Bytes offset;
        if (const auto later = layers.upper_bound(time.first); later != layers.begin()) {
            const auto latest = std::prev(later);  // of those that have ended
            offset = latest->second;
            layers.erase(latest);
            layers.emplace(time.last, offset);
        } else if (const auto spare = occupancy.first_gap(time, size, floor)) {
            offset = *spare;
        } else if (size <= problem.limit - top) {
            offset = top;
            top += size;
            layers.emplace(time.last, offset);
        } else {
            ++plan.left_out;
            continue;
        }
        plan.offsets[i] = offset;
        plan.height = std::max(plan.height, offset + size);
        occupancy.take(time, offset, offset + size);
    }
    plan.optimal = plan.left_out == 0 && plan.height == problem.load;
    plan.work = occupancy.work();
    return plan;
}

}  // namespace fragsim::planner
