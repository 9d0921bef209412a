#include "lib/replay/placement_record.hpp"

namespace fragsim {

void PlacementRecorder::observe(const Step& step) {
    follow_device_calls();
    record_.reserved.push_back(stats_.reserved_bytes.all.current);
    if (step.kind != EventKind::alloc) return;
    record_.ops.push_back(step.op);
    if (!step.placement) {
        record_.placements.push_back({-2, 0, 0});
        return;
    }
    const Address address = step.placement->address;
    const auto above = ranges_.upper_bound(address);
    if (above != ranges_.begin() && address < std::prev(above)->second.end) {
        const auto& [start, range] = *std::prev(above);
        record_.placements.push_back({range.ordinal, static_cast<Bytes>(address - start), step.placement->allocated});
        return;
    }
    if (!pool_base_) pool_base_ = address;
    record_.placements.push_back({-1, static_cast<Bytes>(address - *pool_base_), step.placement->allocated});
}

void PlacementRecorder::follow_device_calls() {
    for (; calls_seen_ < device_.calls().size(); ++calls_seen_) {
        const DriverCall& call = device_.calls()[calls_seen_];
        if (call.kind == DriverCallKind::malloc || call.kind == DriverCallKind::reserve)
            ranges_[call.address] = {call.address + static_cast<Address>(call.bytes), next_ordinal_++};
        if (call.kind == DriverCallKind::free || call.kind == DriverCallKind::unreserve) ranges_.erase(call.address);
    }
}

}  // namespace fragsim
