#include "lib/device/cost_model.hpp"

#include <algorithm>
#include <array>

namespace fragsim {
namespace {

// Medians of 20 calls. "Crowded" is the mean of the medians with 100 and with 1,000 live allocations, which differ by
// less than 20 % of each other below 34 GB. The single cudaMalloc points of 32 GiB vary between runs by a factor of 3.
constexpr std::array kH200Malloc{
    CostPoint{2 * kMiB, 33'979, 64'105},     CostPoint{20 * kMiB, 34'995, 69'814},
    CostPoint{64 * kMiB, 38'678, 69'565},    CostPoint{256 * kMiB, 41'887, 75'047},
    CostPoint{1 * kGiB, 180'609, 119'925},   CostPoint{8 * kGiB, 566'857, 1'170'638},
    CostPoint{32 * kGiB, 17'061'505, 17'061'505},
};
constexpr std::array kH200Free{
    CostPoint{2 * kMiB, 29'761, 37'945},     CostPoint{20 * kMiB, 39'298, 50'280},
    CostPoint{64 * kMiB, 53'463, 73'231},    CostPoint{256 * kMiB, 114'922, 174'892},
    CostPoint{1 * kGiB, 506'285, 606'174},   CostPoint{8 * kGiB, 4'435'050, 5'889'847},
    CostPoint{32 * kGiB, 25'704'427, 22'849'124},
};
constexpr double kCrowd = 100;  // live allocations from which on a call costs the crowded price

double price(const CostPoint& point, double crowd) { return point.alone_ns + crowd * (point.crowded_ns - point.alone_ns); }

}  // namespace

const char* name(DriverCallKind kind) {
    switch (kind) {
        case DriverCallKind::malloc: return "malloc";
        case DriverCallKind::free: return "free";
    }
    return "";
}

const CostModel& CostModel::h200() {
    static constexpr Profile kProfile{kH200Malloc, kH200Free};
    static const CostModel model(kProfile);
    return model;
}

// Straight lines between the points, the nearest point outside them, and a straight line from alone to crowded.
double CostModel::nanoseconds(DriverCallKind kind, Bytes bytes, std::int64_t live) const {
    const std::span<const CostPoint> points = kind == DriverCallKind::malloc ? profile_.malloc : profile_.free;
    const double crowd = std::clamp(static_cast<double>(live) / kCrowd, 0.0, 1.0);
    const auto above = std::find_if(points.begin(), points.end(), [&](const CostPoint& p) { return p.bytes >= bytes; });
    if (above == points.begin()) return price(points.front(), crowd);
    if (above == points.end()) {  // beyond the last point the cost grows in proportion
        const CostPoint& last = points.back();
        return price(last, crowd) * static_cast<double>(bytes) / static_cast<double>(last.bytes);
    }
    const CostPoint& below = *(above - 1);
    const double part = static_cast<double>(bytes - below.bytes) / static_cast<double>(above->bytes - below.bytes);
    return price(below, crowd) + part * (price(*above, crowd) - price(below, crowd));
}

}  // namespace fragsim
