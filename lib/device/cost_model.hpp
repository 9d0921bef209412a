// What a driver call costs, in nanoseconds of the calling thread: medians measured on an idle card, interpolated.
#pragma once

#include <cstdint>
#include <span>

#include "lib/core/types.hpp"

namespace fragsim {

enum class DriverCallKind : std::uint8_t { malloc, free };
const char* name(DriverCallKind kind);  // as the driver log spells it

// One measured point: a call on `bytes`, with no other allocation alive and with a hundred or more.
struct CostPoint {
    Bytes bytes;
    double alone_ns, crowded_ns;
};

class CostModel {
public:
    // `points` by ascending size, at least one; they must outlive the model.
    struct Profile {
        std::span<const CostPoint> malloc, free;
    };
    explicit CostModel(const Profile& profile) : profile_(profile) {}

    // The bundled profile: one NVIDIA H200, driver 580.159.04 (spec/measured-h200.md section 4, truth/latency.csv).
    static const CostModel& h200();

    // `live`: allocations the process holds from the driver before the call.
    double nanoseconds(DriverCallKind kind, Bytes bytes, std::int64_t live) const;

private:
    Profile profile_;
};

}  // namespace fragsim
