// How much memory the recorded process had, as far as its own refusals show it.
#pragma once

#include <optional>

#include "lib/core/limits.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

struct RecordedCapacity {
    Bytes bytes;       // at least this: the recorded process once held it, or held and found it free
    bool full_device;  // the device had no room for what was refused; else a memory limit was in force

    Limits limits() const { return full_device ? Limits{bytes, {}} : Limits{{}, bytes}; }
};

// From the refused requests whose entries say what the device had free. None: there is no such entry, or
// no driver call to see what the process held.
std::optional<RecordedCapacity> capacity_of_recording(const Trace& trace);

// Those given, if there are any; else the recording's.
Limits limits_for(const Trace& trace, const Limits& given);

}  // namespace fragsim
