// Why memory ran out, for people: one cause, and the figures that show it.
#pragma once

#include <optional>

#include "lib/metrics/oom.hpp"
#include "lib/metrics/waste.hpp"

namespace fragsim {

enum class Verdict {
    capacity,          // what is live and the request exceed the capacity: no setting helps
    limit,             // they exceed a limit of the process, while the device had room
    rounding,          // they would fit, but not rounded and in whole blocks
    fragmentation,     // enough is free for this request, but in pieces
    pending_frees,     // memory waits for other streams' work
    other_size_class,  // free memory is kept for blocks of other sizes
    other_streams,     // free memory is kept for other streams
    private_pools,     // free memory is kept for graphs or MemPools
    unreleased,        // wholly free segments were not given back
    rejected,          // the settings refuse before anything is given back
    served,            // the recorded run did not get it, this replay does
    policy_limit,      // the policy's own limit, while the device had room
};
const char* name(Verdict verdict);

// What the judgement is made from. Bytes.
struct Shortage {
    Oom oom;                           // as the replay saw it; where it serves the request: before that
    Waste waste;                       // at that moment, seen by the request
    std::optional<Bytes> device_free;  // what the recorded device said was free
    bool replay_serves = false;        // the replay would have served what the recorded run did not get
    bool process_limit = false;        // the capacity is a limit of the process; else all there is
};

Verdict judge(const Shortage& shortage);

}  // namespace fragsim
