#include "lib/study/score.hpp"

#include <algorithm>

namespace fragsim {
namespace {

// How `a` compares in one goal: negative, it is better.
double compare(const Score& a, const Score& b, Goal goal) {
    switch (goal) {
        case Goal::survive:
            return a.failing != b.failing ? static_cast<double>(a.failing - b.failing)
                                          : static_cast<double>(a.ooms - b.ooms);
        case Goal::reserved:
            return a.reserved != b.reserved ? static_cast<double>(a.reserved - b.reserved)
                                            : static_cast<double>(a.reserved_sum - b.reserved_sum);
        case Goal::stall: return a.stall_ns - b.stall_ns;
    }
    return 0;
}

// Of all goals but survival the first.
double figure(const Score& score, const std::vector<Goal>& goals) {
    const auto goal = std::find_if(goals.begin(), goals.end(), [](Goal g) { return g != Goal::survive; });
    if (goal == goals.end()) return 0;
    return *goal == Goal::stall ? score.stall_ns : static_cast<double>(score.reserved);
}

}  // namespace

bool better(const Score& a, const Score& b, const std::vector<Goal>& goals) {
    if (a.refused != b.refused) return b.refused;
    for (const Goal goal : goals)
        if (const double difference = compare(a, b, goal); difference != 0) return difference < 0;
    return false;
}

std::size_t simplest_of(const std::vector<Candidate>& tried, std::size_t best, const std::vector<Goal>& goals) {
    const auto keys = [&](std::size_t i) {
        const std::string& conf = tried[i].alloc_conf;
        return conf.empty() ? 0 : 1 + std::count(conf.begin(), conf.end(), ':');
    };
    const double bound = 1.01 * figure(tried[best].score, goals);
    std::size_t simplest = best;
    for (std::size_t i = 0; i < tried.size(); ++i) {
        if (better(tried[best].score, tried[i].score, {Goal::survive}) || figure(tried[i].score, goals) > bound)
            continue;
        const auto more = keys(i) - keys(simplest);
        if (more < 0 || (more == 0 && better(tried[i].score, tried[simplest].score, goals))) simplest = i;
    }
    return simplest;
}

std::vector<std::size_t> pareto_front(const std::vector<Candidate>& tried) {
    std::size_t surest = 0;
    for (std::size_t i = 0; i < tried.size(); ++i)
        if (better(tried[i].score, tried[surest].score, {Goal::survive})) surest = i;
    std::vector<std::size_t> order, front;
    for (std::size_t i = 0; i < tried.size(); ++i)
        if (!better(tried[surest].score, tried[i].score, {Goal::survive})) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return better(tried[a].score, tried[b].score, {Goal::reserved, Goal::stall});
    });
    for (const std::size_t i : order)
        if (front.empty() || tried[i].score.stall_ns < tried[front.back()].score.stall_ns) front.push_back(i);
    return front;
}

}  // namespace fragsim
