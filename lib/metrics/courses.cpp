#include "lib/metrics/courses.hpp"

#include <algorithm>

namespace fragsim {
namespace {

struct Followed {
    const char* key;
    std::int64_t (*value)(const AllocatorStats& stats);
};
constexpr Followed kFollowed[] = {
    {"reserved_bytes.all.peak", [](const AllocatorStats& s) { return s.reserved_bytes.all.peak; }},
    {"num_alloc_retries", [](const AllocatorStats& s) { return s.num_alloc_retries; }},
    {"num_ooms", [](const AllocatorStats& s) { return s.num_ooms; }},
    {"num_sync_all_streams", [](const AllocatorStats& s) { return s.num_sync_all_streams; }},
    {"num_device_alloc", [](const AllocatorStats& s) { return s.num_device_alloc; }},
    {"num_device_free", [](const AllocatorStats& s) { return s.num_device_free; }},
};

std::int64_t last_value(const Course& course) { return course.points.empty() ? 0 : course.points.back().value; }

// What a course's value after `op` is at least and at most, as far as its points say.
std::pair<std::int64_t, std::int64_t> bounds(const Course& course, std::uint32_t op) {
    const auto next = std::upper_bound(course.points.begin(), course.points.end(), op,
        [](std::uint32_t o, const Course::Point& point) { return o < point.op; });
    const bool first = next == course.points.begin();
    const std::int64_t least = first ? 0 : std::prev(next)->value;
    // The first point is never left out, and at a point itself the value is known.
    const bool known = !course.thinned() || first || next == course.points.end() || std::prev(next)->op == op;
    return {least, known ? least : next->value};
}

}  // namespace

std::optional<OpRange> began(const Course& baseline, const Course& candidate, double allowance) {
    // The baseline never falls, so it is exceeded where the candidate rises.
    std::optional<std::uint32_t> possibly;
    std::int64_t before = 0;  // the candidate's value until this point
    for (const Course::Point& point : candidate.points) {
        const auto above = [&](std::int64_t value, std::int64_t base) {
            return static_cast<double>(value - base) > allowance;
        };
        // Right before it was certainly not exceeded: what may have been earlier is over.
        if (possibly && !above(before, bounds(baseline, point.op - 1).first)) possibly.reset();
        const auto [least, most] = bounds(baseline, point.op);
        if (!possibly && above(point.value, least)) possibly = point.op;
        if (above(point.value, most)) return OpRange{*possibly, point.op};
        before = point.value;
    }
    return {};
}

Course thin(Course course, std::size_t most) {
    const std::size_t count = course.points.size();
    if (count <= most) return course;
    for (std::size_t i = 0; i < most; ++i) course.points[i] = course.points[i * (count - 1) / (most - 1)];
    course.points.resize(most);
    return course;
}

CourseRecorder::CourseRecorder(const AllocatorStats& stats) : stats_(stats) {
    for (const Followed& followed : kFollowed) courses_.push_back({followed.key, 0, {}});
    note(0);  // what the recording begins with
}

void CourseRecorder::observe(const Step& step) { note(step.op); }

void CourseRecorder::note(std::uint32_t op) {
    for (std::size_t i = 0; i < courses_.size(); ++i) {
        Course& course = courses_[i];
        const std::int64_t value = kFollowed[i].value(stats_);
        if (value == last_value(course)) continue;
        if (!course.points.empty() && course.points.back().op == op) {
            course.points.back().value = value;
            continue;
        }
        course.points.push_back({op, value});
        ++course.changes;
    }
}

}  // namespace fragsim
