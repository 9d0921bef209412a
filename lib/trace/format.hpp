// What a trace format is to the rest of the program: a name, a way to recognise it, a reader.
#pragma once

#include <string_view>

#include "lib/trace/input.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

struct FormatInfo {
    std::string_view name;     // "pytorch-snapshot"
    std::string_view summary;  // one line for `list formats`
    // Judges by content alone. `head` holds the first bytes of the uncompressed file, at most 4 KiB.
    bool (*detect)(std::string_view head);
    // Reads to the end. Throws Error(input) naming file, position, value; doubtful entries go to
    // Recording::diagnostics. Leaves Recording::path and ::format to the caller.
    Recording (*read)(Input& input);
};

}  // namespace fragsim
