// Where every buffer went and what was reserved, in terms that two devices share: the n-th range that the policy got,
// and the offset in it.
#pragma once

#include <map>
#include <vector>

#include "lib/replay/replay.hpp"

namespace fragsim {

struct RelativePlacement {
    std::int32_t range;  // ordinal among segments and reserved ranges; -1: the driver's own pool; -2: out of memory
    Bytes offset;        // in a pool: from the first block that it gave
    Bytes allocated;
    friend bool operator==(const RelativePlacement&, const RelativePlacement&) = default;
};

struct PlacementRecord {
    std::vector<RelativePlacement> placements;  // of the allocations, in order
    std::vector<std::uint32_t> ops;             // of each of them
    std::vector<Bytes> reserved;                // after every event that reached the policy
};

class PlacementRecorder final : public ReplayObserver {
public:
    // Both must outlive this.
    PlacementRecorder(const LoggedDevice& device, const AllocatorStats& stats) : device_(device), stats_(stats) {}

    void observe(const Step& step) override;
    PlacementRecord take() { return std::move(record_); }

private:
    struct Range {
        Address end;
        std::int32_t ordinal;
    };
    void follow_device_calls();

    const LoggedDevice& device_;
    const AllocatorStats& stats_;
    std::size_t calls_seen_ = 0;
    std::int32_t next_ordinal_ = 0;
    std::map<Address, Range> ranges_;
    std::optional<Address> pool_base_;
    PlacementRecord record_;
};

}  // namespace fragsim
