// Exact search in a grid of settings, when each run says for which settings around its own it would have gone the same
// way: boxes of settings are struck out, run by run, until none is left or the price is paid.
//
//   +-----------+-------+      a run at * decided the box around it; what is left is cut into boxes,
//   |           |       |      and the largest of them are tried next
//   |   +---+   |       |
//   |   | * |   |       |
//   |   +---+   |       |
//   +-----------+-------+
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace fragsim {

using GridPoint = std::vector<std::int64_t>;  // a value an axis

// All points with low[k] <= point[k] <= high[k] on each axis k.
struct Box {
    GridPoint low, high;

    bool contains(const GridPoint& point) const;
    double points() const;
    friend bool operator==(const Box&, const Box&) = default;
};

// `from` without `hole`, as boxes that do not overlap.
std::vector<Box> difference(const Box& from, const Box& hole);

struct Cover {
    bool complete = false;  // every point is in a box that was run
    double points = 0;      // of the grid
    double covered = 0;     // of them
};

// `run`: tries the points given, at once, and returns for each a box around it that it decided. Points are given in
// batches of the same size whatever the number of threads, so that the search is the same.
// `affordable`: asked before each batch.
Cover cover(const Box& grid, const std::function<std::vector<Box>(const std::vector<GridPoint>&)>& run,
    const std::function<bool()>& affordable);

}  // namespace fragsim
