#include "lib/study/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace fragsim {
namespace {

std::string describe(const RelativePlacement& placement) {
    if (placement.range == -2) return "out of memory";
    if (placement.range == -1) return fmt::format("pool + {}", placement.offset);
    return fmt::format("range {} + {}", placement.range, placement.offset);
}

}  // namespace

Agreement compare_placements(const PlacementRecord& a, const PlacementRecord& b) {
    Agreement agreement;
    agreement.ooms_equal = true;
    agreement.allocs = static_cast<std::int64_t>(std::max(a.placements.size(), b.placements.size()));
    for (std::size_t i = 0; i < std::min(a.placements.size(), b.placements.size()); ++i) {
        const bool oom = a.placements[i].range == -2, other_oom = b.placements[i].range == -2;
        agreement.ooms_host += oom;
        agreement.ooms_device += other_oom;
        if (oom != other_oom) agreement.ooms_equal = false;
        if (a.placements[i] == b.placements[i])
            ++agreement.placements_equal;
        else if (!agreement.first_difference)
            agreement.first_difference = {a.ops[i], describe(a.placements[i]), describe(b.placements[i])};
    }
    agreement.events = static_cast<std::int64_t>(std::max(a.reserved.size(), b.reserved.size()));
    for (std::size_t i = 0; i < std::min(a.reserved.size(), b.reserved.size()); ++i) {
        agreement.reserved_equal += a.reserved[i] == b.reserved[i];
        agreement.largest_reserved_difference =
            std::max(agreement.largest_reserved_difference, std::abs(a.reserved[i] - b.reserved[i]));
    }
    return agreement;
}

}  // namespace fragsim
