#include "lib/device/cost_model.hpp"

#include <algorithm>

namespace fragsim {
namespace {

constexpr double kCrowd = 100;  // live allocations from which on a call costs the crowded price

double price(const CostPoint& point, double crowd) {
    return point.alone_ns + crowd * (point.crowded_ns - point.alone_ns);
}

// Straight lines between the points and from alone to crowded; the first point below them, in proportion above them.
double interpolate(const CostCurve& points, Bytes bytes, std::int64_t live) {
    const double crowd = std::clamp(static_cast<double>(live) / kCrowd, 0.0, 1.0);
    const auto above = std::find_if(points.begin(), points.end(), [&](const CostPoint& p) { return p.bytes >= bytes; });
    if (above == points.begin()) return price(points.front(), crowd);
    const CostPoint& below = *(above - 1);
    if (above == points.end())
        return price(below, crowd) * static_cast<double>(bytes) / static_cast<double>(below.bytes);
    const double part = static_cast<double>(bytes - below.bytes) / static_cast<double>(above->bytes - below.bytes);
    return price(below, crowd) + part * (price(*above, crowd) - price(below, crowd));
}

}  // namespace

const char* name(DriverCallKind kind) {
    static constexpr const char* kNames[] = {"malloc", "free", "reserve", "unreserve", "map", "unmap", "alias",
        "unalias", "malloc_async", "free_async", "trim", "record", "wait", "synchronize"};
    return kNames[static_cast<int>(kind)];
}

double CostModel::malloc_ns(Bytes bytes, std::int64_t live) const { return interpolate(profile_.malloc, bytes, live); }
double CostModel::free_ns(Bytes bytes, std::int64_t live) const { return interpolate(profile_.free, bytes, live); }

// Ranges larger than the last point were not measured; its cost is taken.
double CostModel::reserve_ns(Bytes bytes) const {
    return interpolate(profile_.reserve, std::min(bytes, profile_.reserve.back().bytes), 0);
}
double CostModel::unreserve_ns(Bytes bytes) const {
    return interpolate(profile_.unreserve, std::min(bytes, profile_.unreserve.back().bytes), 0);
}

double CostModel::map_ns(Bytes bytes, Bytes page) const {
    const auto pages = static_cast<double>(bytes / page);
    return pages * (interpolate(profile_.create, page, 0) + interpolate(profile_.map, page, 0)) +
           access_ns(bytes, page);
}

// The first page costs what a range of one page costs, the others less.
double CostModel::access_ns(Bytes bytes, Bytes page) const {
    return interpolate(profile_.set_access, page, 0) + static_cast<double>(bytes / page - 1) * profile_.access_page_ns;
}

double CostModel::unmap_ns(Bytes bytes, Bytes page) const {
    return static_cast<double>(bytes / page) *
           (interpolate(profile_.unmap, page, 0) + interpolate(profile_.release, page, 0));
}

double CostModel::move_ns(Bytes page) const {
    return interpolate(profile_.unmap, page, 0) + interpolate(profile_.map, page, 0) +
           interpolate(profile_.set_access, page, 0);
}

double CostModel::alias_ns(Bytes bytes, Bytes page) const {
    return static_cast<double>(bytes / page) * interpolate(profile_.map, page, 0) + access_ns(bytes, page);
}

double CostModel::unalias_ns(Bytes bytes, Bytes page) const {
    return static_cast<double>(bytes / page) * interpolate(profile_.unmap, page, 0);
}

double CostModel::pool_grow_ns(Bytes bytes) const { return interpolate(profile_.pool_grow, bytes, 0); }

// Not measured; taken as unmapping and releasing pages of a chunk's size.
double CostModel::pool_release_ns(Bytes bytes) const { return unmap_ns(bytes, 32 * kMiB); }

}  // namespace fragsim
