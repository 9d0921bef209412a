// How the figures that only grow came to be: after which op each of them changed. Two replays of one trace can then be
// compared op by op, and a regression traced to where it began, without keeping every op.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/replay/replay.hpp"

namespace fragsim {

struct Course {
    struct Point {
        std::uint32_t op;
        std::int64_t value;  // after the op and what followed it up to the next one
        friend bool operator==(const Point&, const Point&) = default;
    };
    std::string key;           // of the metric
    std::int64_t changes = 0;  // how many points there were before any were left out
    std::vector<Point> points;
    // Ops and values rise. The value is 0 before the first point and stays after the last.

    bool thinned() const { return changes > static_cast<std::int64_t>(points.size()); }
};

// Both ends included; the same op twice where it is known.
struct OpRange {
    std::uint32_t first, last;
};

// The first op after which `candidate`, which has all of its points, is above `baseline` by more than `allowance`.
// Where the baseline's course is thinned, the ops between which it got there, as far as the points that are left show;
// that it was above for a while between two of them is not seen. None: it never is.
std::optional<OpRange> began(const Course& baseline, const Course& candidate, double allowance);

// At most `most` (> 1) of the points, the first and the last among them, evenly spread.
Course thin(Course course, std::size_t most);

// Follows peak reserved bytes, out of memory, retries, synchronizations and driver calls.
class CourseRecorder final : public ReplayObserver {
public:
    explicit CourseRecorder(const AllocatorStats& stats);  // which must outlive this

    void observe(const Step& step) override;
    std::vector<Course> take() { return std::move(courses_); }

private:
    void note(std::uint32_t op);

    const AllocatorStats& stats_;
    std::vector<Course> courses_;
};

}  // namespace fragsim
