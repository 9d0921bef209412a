// The engine: the only loop over a trace. It drives a policy op by op, skips what the policy could not serve, and tells
// observers after every event. It does not know which policy it drives.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/device/logged_device.hpp"
#include "lib/policy/policy.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

enum class OnOom {
    skip,  // leave the allocation and its free out and go on
    stop,  // end the replay there
};

// When a free that waited for another stream takes effect.
enum class Frees {
    requested,  // the policy hears that the program let go; it may reuse the memory once the recording saw the free
                // complete, or once it waits for all streams itself
    completed,  // the program lets go only when the recording saw the free complete
};

// What just happened.
struct Step {
    std::uint32_t event;  // index into Trace::events
    std::uint32_t op;     // index of this op, or of the next one when the event is none
    EventKind kind;
    BufferId buffer;                     // none when the event has none
    std::optional<Placement> placement;  // alloc: none is out of memory
    bool rejected = false;               // out of memory: refused before anything cached was given back
};

class ReplayObserver {
public:
    virtual ~ReplayObserver() = default;
    // Before an event reaches the policy, for those in ReplayOptions::before; `step` has no placement yet.
    virtual void before(const Step& /*step*/) {}
    // After every event that reached the policy. Events of buffers that were skipped do not.
    virtual void observe(const Step& step) = 0;
};

struct ReplayOptions {
    OnOom on_oom = OnOom::skip;
    Frees frees = Frees::requested;
    std::uint32_t end_event = 0xffffffffu;    // replay only events before this one
    std::span<const BufferId> left_out = {};  // live at the start, but not here: they are skipped
    // Who wants to hear of an event before the policy does, in this order.
    std::span<ReplayObserver* const> before = {};
};

struct ReplayOutcome {
    std::uint32_t ops = 0;                   // replayed, the skipped ones included
    std::uint32_t ooms = 0;                  // requests that failed, the rejected ones included
    std::uint32_t events = 0;                // of the trace, gone through
    bool stopped = false;                    // by OnOom::stop
    std::vector<std::uint32_t> failed = {};  // the events of those requests
};

struct Restored {
    bool adopted = false;  // the policy took the recorded segments over: they belong to the device from now on
    // Else the live buffers were allocated one by one: those that are there, and those that did not fit.
    std::vector<std::pair<BufferId, Placement>> placed;
    std::vector<BufferId> left_out;
};

// Brings the policy to the trace's initial state. `adopt`: the policy may take the segments over as they are; not on a
// real device, where they do not exist. Under Frees::completed the program has not let go of what waits for its free.
Restored restore_start(const Trace& trace, Policy& policy, Frees frees = Frees::requested, bool adopt = true);

// What a buffer asks a policy for.
inline Request request_of(const Buffer& buffer) { return {buffer.requested, buffer.stream_id(), buffer.pool}; }

ReplayOutcome replay(const Trace& trace, Policy& policy, LoggedDevice& device,
    std::span<ReplayObserver* const> observers, const ReplayOptions& options = {});

}  // namespace fragsim
