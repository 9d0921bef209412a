// How much memory the recorded process had, as far as its own refusals show it.
#pragma once

#include <optional>
#include <vector>

#include "lib/core/limits.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

// A request for memory that was refused. Either the recording says so, or cached memory went back before the request
// was served (spec/pytorch-caching-allocator.md, section 15.2).
struct RecordedRefusal {
    std::uint32_t event;  // of the request
    Bytes reserved;       // before anything was given back
    Bytes wanted;         // from the device
    bool served;          // after the retry

    Bytes below() const { return reserved + wanted; }  // what the process could have was less
};

// In order. Where garbage_collection_threshold is in force, memory may also have gone back before the device was asked.
std::vector<RecordedRefusal> recorded_refusals(const Trace& trace);

struct RecordedCapacity {
    Bytes bytes;       // at least this: the recorded process once held it, or held and found it free
    bool full_device;  // the device had no room for what was refused; else a memory limit was in force
    std::optional<RecordedRefusal> retry =
        {};  // all that shows it is that requests were served after a retry: one of those

    Limits limits() const { return full_device ? Limits{bytes, {}} : Limits{{}, bytes}; }
};

// From the refused requests whose entries say what the device had free, else from retries. None: there are neither, or
// no driver call to see what the process held.
std::optional<RecordedCapacity> capacity_of_recording(const Trace& trace);

// Those given, if there are any; else the recording's.
Limits limits_for(const Trace& trace, const Limits& given);

}  // namespace fragsim
