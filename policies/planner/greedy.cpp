#include "policies/planner/greedy.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "policies/planner/occupancy.hpp"

namespace fragsim::planner {
namespace {

// Ascending by key(item); equal ones by index.
template <class Key>
Order ordered(const Problem& problem, const Key& key) {
    std::vector<std::pair<decltype(key(0u)), std::uint32_t>> keyed;
    keyed.reserve(problem.items.size());
    for (std::uint32_t i = 0; i < problem.items.size(); ++i) keyed.emplace_back(key(i), i);
    std::sort(keyed.begin(), keyed.end());
    Order order;
    order.reserve(keyed.size());
    for (const auto& entry : keyed) order.push_back(entry.second);
    return order;
}

std::int64_t lifespan(const Item& item) { return std::int64_t{item.end} - item.begin; }

// A product may exceed 64 bits; what a double rounds away only makes ties.
double area(const Item& item) { return static_cast<double>(item.bytes) * static_cast<double>(lifespan(item)); }

Bytes bytes_left_out(const Problem& problem, const Plan& plan) {
    Bytes sum = 0;
    for (std::size_t i = 0; i < plan.offsets.size(); ++i)
        if (plan.offsets[i] == Plan::kLeftOut) sum += std::min(problem.items[i].bytes, problem.limit);
    return sum;
}

}  // namespace

Order by_size(const Problem& problem) {
    return ordered(problem, [&](std::uint32_t i) { return -problem.items[i].bytes; });
}

Order by_start(const Problem& problem) {
    return ordered(problem, [&](std::uint32_t i) { return problem.items[i].begin; });
}

Order by_area(const Problem& problem) {
    return ordered(problem, [&](std::uint32_t i) { return -area(problem.items[i]); });
}

Order by_contention(const Problem& problem) {
    // The largest load in [first, last) by doubling: peaks[k][t] is that of 2^k sections from t on.
    std::vector<std::vector<Bytes>> peaks{problem.sections.load};
    for (std::size_t width = 1; 2 * width <= problem.sections.count(); width *= 2) {
        const std::vector<Bytes>& half = peaks.back();
        std::vector<Bytes> next(half.size() - width);
        for (std::size_t t = 0; t < next.size(); ++t) next[t] = std::max(half[t], half[t + width]);
        peaks.push_back(std::move(next));
    }
    const auto contention = [&](Sections::Range time) {
        const auto level = static_cast<std::uint32_t>(std::bit_width(time.last - time.first)) - 1;
        return std::max(peaks[level][time.first], peaks[level][time.last - (1u << level)]);
    };
    return ordered(problem,
        [&](std::uint32_t i) { return std::pair(-contention(problem.sections.of[i]), -area(problem.items[i])); });
}

Weights weights_by_size(const Problem& problem) {
    Weights weights;
    for (const Item& item : problem.items) weights.push_back(static_cast<double>(item.bytes));
    return weights;
}

Weights weights_by_size_class(const Problem& problem) {
    std::int64_t longest = 1;
    for (const Item& item : problem.items) longest = std::max(longest, lifespan(item));
    Weights weights;
    for (const Item& item : problem.items) {
        const auto floor = std::bit_floor(static_cast<std::uint64_t>(item.bytes));
        weights.push_back(static_cast<double>(floor) *
                          (1 + 0.9 * static_cast<double>(lifespan(item)) / static_cast<double>(longest)));
    }
    return weights;
}

Plan place(const Problem& problem, const Order& order, Gap gap) {
    Occupancy occupancy(problem.sections.count());
    Plan plan;
    plan.offsets.assign(problem.items.size(), Plan::kLeftOut);
    for (const std::uint32_t i : order) {
        const Sections::Range time = problem.sections.of[i];
        const Bytes bytes = problem.items[i].bytes;
        const std::optional<Bytes> offset = gap == Gap::lowest ? occupancy.first_gap(time, bytes, problem.limit)
                                                               : occupancy.best_gap(time, bytes, problem.limit);
        if (!offset) {
            ++plan.left_out;
            continue;
        }
        plan.offsets[i] = *offset;
        plan.height = std::max(plan.height, *offset + bytes);
        occupancy.take(time, *offset, *offset + bytes);
    }
    plan.optimal = plan.left_out == 0 && plan.height == problem.load;
    plan.work = occupancy.work();
    return plan;
}

Plan place_and_mend(const Problem& problem, Weights weights, std::int64_t rounds, std::int64_t work) {
    constexpr double kPull = 16;  // what the highest item gains, in times its weight; found by trial on recorded traces
    const auto order = [&] { return ordered(problem, [&](std::uint32_t i) { return -weights[i]; }); };
    Plan best = place(problem, order()), last = best;
    std::int64_t done = best.work;
    for (; rounds > 0 && done < work && !best.optimal; --rounds) {
        const Bytes target = std::min(problem.load, problem.limit);
        const Bytes excess = std::max<Bytes>(last.height - target, 1);
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const bool left_out = last.offsets[i] == Plan::kLeftOut;
            const Bytes above = left_out ? excess : last.offsets[i] + problem.items[i].bytes - target;
            if (above > 0) weights[i] *= 1 + kPull * (static_cast<double>(above) / static_cast<double>(excess));
        }
        last = place(problem, order());
        done += last.work;
        if (is_better(problem, last, best)) best = last;
    }
    best.work = done;
    return best;
}

bool is_better(const Problem& problem, const Plan& plan, const Plan& than) {
    if (plan.left_out != than.left_out) return plan.left_out < than.left_out;
    if (plan.left_out > 0) {
        const Bytes a = bytes_left_out(problem, plan), b = bytes_left_out(problem, than);
        if (a != b) return a < b;
    }
    return plan.height < than.height;
}

}  // namespace fragsim::planner
