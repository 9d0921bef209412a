#include "traces/registry.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "lib/trace/trace_limits.hpp"

namespace fragsim {

#define FRAGSIM_FORMAT(name) FormatInfo name##_format();
#include "traces/formats.def"
#undef FRAGSIM_FORMAT

std::span<const FormatInfo> trace_formats() {
    static const auto formats = std::to_array<FormatInfo>({
#define FRAGSIM_FORMAT(name) name##_format(),
#include "traces/formats.def"
#undef FRAGSIM_FORMAT
    });
    return formats;
}

Recording read_recording(const std::string& path, const InputOptions& options) {
    Input input(path, options);
    const std::string_view head = input.head();
    for (const FormatInfo& format : trace_formats()) {
        if (!format.detect(head)) continue;
        Recording recording = format.read(input);
        for (const Trace& trace : recording.traces) check_limits(trace, input.name());
        recording.path = path;
        recording.format = format.name;
        recording.sha256 = input.sha256();
        return recording;
    }

    std::string names;
    for (const FormatInfo& format : trace_formats()) {
        if (!names.empty()) names += ", ";
        names += format.name;
    }
    throw Error(ErrorCode::input, fmt::format("{}: no known trace format", input.name()),
        fmt::format("readable, plain or compressed with gzip or zstd: {}", names));
}

}  // namespace fragsim
