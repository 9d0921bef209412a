// Where an allocator's reserved memory is: what the program asked for, and what of the rest is wasted now.
#pragma once

#include <vector>

#include "lib/policy/policy.hpp"
#include "lib/replay/replay.hpp"

namespace fragsim {

// Bytes, seen by one request. They add up to the reserved bytes: reserved = requested + waste().
struct Waste {
    Bytes requested = 0;         // of blocks in the program's hands
    Bytes rounding = 0;          // their sizes rounded, less what was asked for
    Bytes unsplit = 0;           // their blocks' sizes, less the rounded ones
    Bytes pending = 0;           // blocks whose free waits for other streams
    Bytes pinned = 0;            // free where the request may be served, in segments that also hold blocks in use
    Bytes releasable = 0;        // whole segments and pages, which the allocator could give back, whoever had them
    Bytes other_size_class = 0;  // free, but kept for blocks of other sizes
    Bytes other_streams = 0;     // free, but kept for other streams
    Bytes private_pools = 0;     // free, but kept for another memory pool: graphs' and MemPools' as a rule

    Bytes waste() const {
        return rounding + unsplit + pending + pinned + releasable + other_size_class + other_streams + private_pools;
    }
    Bytes reserved() const { return requested + waste(); }
};

// `asking`: who wants memory (Policy::barrier); its bytes may be 0.
Waste waste_of(const Policy& policy, const MemoryPicture& picture, const Request& asking);

// The course of it: the start, if there is memory in it, about `samples` moments, evenly spaced by op, and the last op.
struct WasteSample {
    std::uint32_t op;  // after it; of the start 0
    Waste waste;
    bool start = false;  // before the first event
};

class WasteRecorder final : public ReplayObserver {
public:
    // Both must outlive this.
    WasteRecorder(const Trace& trace, const Policy& policy, const Request& asking, std::uint32_t samples);

    void observe(const Step& step) override;
    std::vector<WasteSample> take() { return std::move(samples_); }

private:
    const Policy& policy_;
    Request asking_;
    std::uint32_t every_, last_;
    std::vector<WasteSample> samples_;
};

}  // namespace fragsim
