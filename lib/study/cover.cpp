#include "lib/study/cover.hpp"

#include <algorithm>

namespace fragsim {
namespace {

constexpr std::size_t kBatch = 8;

GridPoint middle(const Box& box) {
    GridPoint point = box.low;
    for (std::size_t k = 0; k < point.size(); ++k) point[k] += (box.high[k] - box.low[k]) / 2;
    return point;
}

}  // namespace

bool Box::contains(const GridPoint& point) const {
    for (std::size_t k = 0; k < point.size(); ++k)
        if (point[k] < low[k] || point[k] > high[k]) return false;
    return true;
}

double Box::points() const {
    double points = 1;
    for (std::size_t k = 0; k < low.size(); ++k) points *= static_cast<double>(high[k] - low[k] + 1);
    return points;
}

std::vector<Box> difference(const Box& from, const Box& hole) {
    for (std::size_t k = 0; k < from.low.size(); ++k)
        if (hole.high[k] < from.low[k] || hole.low[k] > from.high[k]) return {from};
    // Axis by axis: what lies beside the hole is cut off, what is left goes on to the next.
    std::vector<Box> parts;
    Box rest = from;
    for (std::size_t k = 0; k < from.low.size(); ++k) {
        if (rest.low[k] < hole.low[k]) {
            parts.push_back(rest);
            parts.back().high[k] = hole.low[k] - 1;
            rest.low[k] = hole.low[k];
        }
        if (rest.high[k] > hole.high[k]) {
            parts.push_back(rest);
            parts.back().low[k] = hole.high[k] + 1;
            rest.high[k] = hole.high[k];
        }
    }
    return parts;
}

Cover cover(const Box& grid, const std::function<std::vector<Box>(const std::vector<GridPoint>&)>& run,
    const std::function<bool()>& affordable) {
    std::vector<Box> left{grid};
    while (!left.empty() && affordable()) {
        const std::size_t batch = std::min(kBatch, left.size());
        std::partial_sort(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(batch), left.end(),
            [](const Box& a, const Box& b) {
                return a.points() != b.points() ? a.points() > b.points() : a.low < b.low;
            });
        std::vector<GridPoint> points;
        for (std::size_t i = 0; i < batch; ++i) points.push_back(middle(left[i]));
        for (const Box& decided : run(points)) {
            std::vector<Box> still;
            for (const Box& box : left)
                for (Box& part : difference(box, decided)) still.push_back(std::move(part));
            left = std::move(still);
        }
    }
    Cover result{left.empty(), grid.points(), grid.points()};
    for (const Box& box : left) result.covered -= box.points();
    return result;
}

}  // namespace fragsim
