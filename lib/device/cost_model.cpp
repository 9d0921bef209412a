#include "lib/device/cost_model.hpp"

#include <algorithm>
#include <array>

namespace fragsim {
namespace {

// Medians of 20 calls. "Crowded" is the mean of the medians with 100 and with 1,000 live allocations, which differ by
// less than 20 % of each other below 34 GB. The single cudaMalloc points of 32 GiB vary between runs by a factor of 3.
constexpr std::array kH200Malloc{
    CostPoint{2 * kMiB, 33'979, 64'105},
    CostPoint{20 * kMiB, 34'995, 69'814},
    CostPoint{64 * kMiB, 38'678, 69'565},
    CostPoint{256 * kMiB, 41'887, 75'047},
    CostPoint{1 * kGiB, 180'609, 119'925},
    CostPoint{8 * kGiB, 566'857, 1'170'638},
    CostPoint{32 * kGiB, 17'061'505, 17'061'505},
};
constexpr std::array kH200Free{
    CostPoint{2 * kMiB, 29'761, 37'945},
    CostPoint{20 * kMiB, 39'298, 50'280},
    CostPoint{64 * kMiB, 53'463, 73'231},
    CostPoint{256 * kMiB, 114'922, 174'892},
    CostPoint{1 * kGiB, 506'285, 606'174},
    CostPoint{8 * kGiB, 4'435'050, 5'889'847},
    CostPoint{32 * kGiB, 25'704'427, 22'849'124},
};
// The calls on virtual memory were measured with nothing else alive only.
constexpr CostPoint idle(Bytes bytes, double ns) { return {bytes, ns, ns}; }
constexpr std::array kH200Reserve{
    idle(2 * kMiB, 771), idle(20 * kMiB, 998), idle(256 * kMiB, 3'363), idle(kGiB, 3'744), idle(8 * kGiB, 11'010)};
constexpr std::array kH200Unreserve{
    idle(2 * kMiB, 603), idle(20 * kMiB, 878), idle(256 * kMiB, 2'870), idle(kGiB, 2'916), idle(8 * kGiB, 17'655)};
constexpr std::array kH200Create{idle(2 * kMiB, 17'619), idle(20 * kMiB, 17'824), idle(256 * kMiB, 21'073),
    idle(kGiB, 30'623), idle(8 * kGiB, 311'392)};
constexpr std::array kH200Map{
    idle(2 * kMiB, 841), idle(20 * kMiB, 849), idle(256 * kMiB, 958), idle(kGiB, 1'016), idle(8 * kGiB, 4'327)};
constexpr std::array kH200SetAccess{idle(2 * kMiB, 25'871), idle(20 * kMiB, 26'499), idle(256 * kMiB, 46'722),
    idle(kGiB, 78'544), idle(8 * kGiB, 354'175)};
constexpr std::array kH200Unmap{idle(2 * kMiB, 17'396), idle(20 * kMiB, 17'801), idle(256 * kMiB, 25'570),
    idle(kGiB, 34'445), idle(8 * kGiB, 109'196)};
constexpr std::array kH200Release{idle(2 * kMiB, 12'476), idle(20 * kMiB, 21'538), idle(256 * kMiB, 143'077),
    idle(kGiB, 536'942), idle(8 * kGiB, 4'665'879)};
// cudaMallocAsync on an empty pool, less the price of a hit.
constexpr std::array kH200PoolGrow{idle(32 * kMiB, 52'700), idle(64 * kMiB, 84'000), idle(256 * kMiB, 321'000),
    idle(kGiB, 1'360'000), idle(8 * kGiB, 13'600'000), idle(32 * kGiB, 51'900'000)};
constexpr double kH200PoolHit = 1'400, kH200PoolFree = 760;
// 8 to 16 chunks moved into one range: 48 us each (truth/async/experiments.txt, X5).
constexpr double kH200PoolMove = 48'300;
constexpr double kH200Record = 600, kH200Synchronize = 800;
constexpr double kH200Wait = 600;  // not measured; taken as cudaEventRecord

constexpr double kCrowd = 100;  // live allocations from which on a call costs the crowded price

double price(const CostPoint& point, double crowd) {
    return point.alone_ns + crowd * (point.crowded_ns - point.alone_ns);
}

// Straight lines between the points and from alone to crowded; the first point below them, in proportion above them.
double interpolate(CostCurve points, Bytes bytes, std::int64_t live) {
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

const CostModel& CostModel::h200() {
    static const CostModel model({kH200Malloc, kH200Free, kH200Reserve, kH200Unreserve, kH200Create, kH200Map,
        kH200SetAccess, kH200Unmap, kH200Release, kH200PoolGrow, kH200PoolHit, kH200PoolFree, kH200PoolMove,
        kH200Record, kH200Wait, kH200Synchronize});
    return model;
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
           interpolate(profile_.set_access, bytes, 0);
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
    return static_cast<double>(bytes / page) * interpolate(profile_.map, page, 0) +
           interpolate(profile_.set_access, bytes, 0);
}

double CostModel::unalias_ns(Bytes bytes, Bytes page) const {
    return static_cast<double>(bytes / page) * interpolate(profile_.unmap, page, 0);
}

double CostModel::pool_grow_ns(Bytes bytes) const { return interpolate(profile_.pool_grow, bytes, 0); }

// Not measured; taken as unmapping and releasing pages of a chunk's size.
double CostModel::pool_release_ns(Bytes bytes) const { return unmap_ns(bytes, 32 * kMiB); }

}  // namespace fragsim
