// How much memory the recorded process had, as far as its own refusals show it.
#pragma once

#include <optional>
#include <vector>

#include "lib/core/limits.hpp"
#include "lib/policy/policy.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

// A request for memory that was refused. Either the recording says so, or cached memory went back before the request
// was served (spec/pytorch-caching-allocator.md, section 15.2).
struct RecordedRefusal {
    std::uint32_t op;     // of the request, or the one that would have come next
    Bytes reserved;       // before anything was given back
    Bytes wanted;         // from the device
    bool served;          // after the retry

    Bytes below() const { return reserved + wanted; }  // what the process could have was less
};

// In order.
std::vector<RecordedRefusal> recorded_refusals(const Trace& trace);

struct RecordedCapacity {
    Bytes bytes;       // at least this: the recorded process once held it, or held and found it free
    bool full_device;  // the device had no room for what was refused; else a memory limit was in force
    std::optional<RecordedRefusal> retry =
        {};  // all that shows it is that requests were served after a retry: one of those

    Limits limits() const { return full_device ? Limits{bytes, {}} : Limits{{}, bytes}; }
};

// Does the policy give cached memory back without a refusal (garbage_collection_threshold)? Then retries show nothing.
bool collects_garbage(const PolicySpec& in_force);

// From the refused requests whose entries say what the device had free, else from retries. None: there are neither, one
// that may have been an empty_cache, or no driver call to see what the process held.
std::optional<RecordedCapacity> capacity_of_recording(const Trace& trace, bool garbage_collected = false);

// Those given, if there are any; else the recording's.
Limits limits_for(const Trace& trace, const Limits& given, bool garbage_collected);

}  // namespace fragsim
