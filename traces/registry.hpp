// The trace formats fragsim reads: every entry of formats.def.
#pragma once

#include <span>
#include <string>

#include "lib/trace/format.hpp"

namespace fragsim {

std::span<const FormatInfo> trace_formats();

// Opens `path` ("-": standard input), recognises its format by content and reads it. Throws Error(input).
Recording read_recording(const std::string& path, const InputOptions& options = {});

}  // namespace fragsim
