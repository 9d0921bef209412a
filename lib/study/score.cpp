#include "lib/study/score.hpp"

#include <algorithm>
#include <tuple>

namespace fragsim {
namespace {

// How `a` compares in one goal: negative, it is better.
double compare(const Score& a, const Score& b, Goal goal) {
    switch (goal) {
        case Goal::survive: {
            const auto order = [](const Score& s) { return std::tuple(s.failing, s.left_out, s.ooms); };
            return order(a) == order(b) ? 0 : order(a) < order(b) ? -1 : 1;
        }
        case Goal::reserved:
            return a.reserved != b.reserved ? static_cast<double>(a.reserved - b.reserved)
                                            : static_cast<double>(a.reserved_sum - b.reserved_sum);
        case Goal::stall: return a.stall_ns - b.stall_ns;
    }
    return 0;
}

}  // namespace

bool better(const Score& a, const Score& b, const std::vector<Goal>& goals) {
    if (a.refused != b.refused) return b.refused;
    for (const Goal goal : goals)
        if (const double difference = compare(a, b, goal); difference != 0) return difference < 0;
    return false;
}

std::vector<std::size_t> pareto_front(const std::vector<Candidate>& tried) {
    std::vector<std::size_t> order, front;
    for (std::size_t i = 0; i < tried.size(); ++i)
        if (!tried[i].score.refused && tried[i].score.failing == 0 && !tried[i].traits.needs_memory_fraction) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return better(tried[a].score, tried[b].score, {Goal::reserved, Goal::stall});
    });
    for (const std::size_t i : order)
        if (front.empty() || tried[i].score.stall_ns < tried[front.back()].score.stall_ns) front.push_back(i);
    return front;
}

}  // namespace fragsim
