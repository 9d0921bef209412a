// How much memory the recorded process had, as far as its own refusals show it.
#pragma once

#include <optional>

#include "lib/trace/trace.hpp"

namespace fragsim {

struct RecordedCapacity {
    Bytes bytes;       // at least this: the recorded process once held it, or held and found it free
    bool full_device;  // the device had no room for what was refused; else a limit of the process was in force
};

// From the refused requests whose entries say what the device had free. None: there is no such entry, or
// no driver call to see what the process held.
std::optional<RecordedCapacity> capacity_of_recording(const Trace& trace);

// The one given, else the recording's.
std::optional<Bytes> capacity_for(const Trace& trace, std::optional<Bytes> given);

}  // namespace fragsim
