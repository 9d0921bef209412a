#include "lib/study/outlier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/core/sizes.hpp"

namespace fragsim {
namespace {

constexpr double kSame = 0.02;  // differences below this are not worth a word

// Half the sum of differences between the parts of all requested bytes that fall into each power of two: 0 the same
// mix, 1 nothing in common.
double mix_distance(const TraceSummary& a, const TraceSummary& b) {
    const auto total = [](const TraceSummary& s) {
        return std::max(1.0,
            static_cast<double>(std::accumulate(s.requested_by_log2.begin(), s.requested_by_log2.end(), Bytes{0})));
    };
    const double total_a = total(a), total_b = total(b);
    double distance = 0;
    for (std::size_t k = 0; k < a.requested_by_log2.size(); ++k)
        distance += std::abs(static_cast<double>(a.requested_by_log2[k]) / total_a -
                             static_cast<double>(b.requested_by_log2[k]) / total_b);
    return distance / 2;
}

std::vector<std::string> reasons(const TraceSummary& own, const TraceSummary& reference) {
    std::vector<std::string> all;
    const auto relative = [](Bytes a, Bytes b) {
        return b == 0 ? 0.0 : static_cast<double>(a - b) / static_cast<double>(b);
    };
    if (const double d = relative(own.requested_peak, reference.requested_peak); std::abs(d) > kSame)
        all.push_back(fmt::format("its own peak: {} live against {} ({:+.1f} %)", format_size(own.requested_peak),
            format_size(reference.requested_peak), 100 * d));
    if (own.streams != reference.streams)
        all.push_back(fmt::format("{} streams: {} against {}", own.streams > reference.streams ? "more" : "fewer",
            own.streams, reference.streams));
    if (const double d = mix_distance(own, reference); d > kSame)
        all.push_back(fmt::format("its own size mix: {:.0f} % of its bytes are of other sizes", 100 * d));
    if (const double d = relative(own.allocs, reference.allocs); std::abs(d) > kSame)
        all.push_back(
            fmt::format("{} allocations: {} against {}", d > 0 ? "more" : "fewer", own.allocs, reference.allocs));
    return all;
}

}  // namespace

std::optional<Outlier> find_outlier(
    const std::vector<double>& figures, const std::vector<TraceSummary>& summaries, double threshold) {
    if (figures.size() < 2) return {};
    std::vector<std::size_t> order(figures.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return figures[a] < figures[b]; });
    const std::size_t reference = order[(order.size() - 1) / 2];
    if (figures[reference] == 0) return {};
    const auto difference = [&](std::size_t i) { return (figures[i] - figures[reference]) / figures[reference]; };
    const std::size_t farthest =
        std::abs(difference(order.back())) >= std::abs(difference(order.front())) ? order.back() : order.front();
    if (std::abs(difference(farthest)) <= threshold) return {};
    return Outlier{farthest, difference(farthest), reasons(summaries[farthest], summaries[reference])};
}

}  // namespace fragsim
