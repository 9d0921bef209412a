// Do the host model and a real device give the same for one policy?
#pragma once

#include <optional>
#include <string>

#include "lib/replay/placement_record.hpp"

namespace fragsim {

struct Agreement {
    std::int64_t allocs = 0, placements_equal = 0;
    std::int64_t events = 0, reserved_equal = 0;
    Bytes largest_reserved_difference = 0;  // of either sign
    std::int64_t ooms_host = 0, ooms_device = 0;
    bool ooms_equal = false;  // the same requests failed
    struct Difference {
        std::uint32_t op;
        std::string host, device;
    };
    std::optional<Difference> first_difference;  // of placements

    bool exact() const { return placements_equal == allocs && reserved_equal == events && ooms_equal; }
};

// The same policy on the same trace.
Agreement compare_placements(const PlacementRecord& host, const PlacementRecord& device);

}  // namespace fragsim
