#include <fmt/format.h>

#include <algorithm>

#include "apps/fragsim/cli.hpp"
#include "lib/core/error.hpp"
#include "traces/registry.hpp"

namespace fragsim {

Recording load(const Invocation& invocation, const std::string& path, bool hash) {
    ProgressLine line("reading " + path, invocation.quiet);
    Recording recording = read_recording(path, {line.callback(), hash});
    line.erase();
    for (const Diagnostics::Entry& entry : recording.diagnostics.entries()) {
        const std::string text = fmt::format("{}: {}: {}, first at {}", path, entry.kind,
            entry.count == 1 ? "once" : fmt::format("{} times", entry.count), entry.first_position);
        if (invocation.strict)
            throw Error(ErrorCode::input, text, "without --strict such entries are counted and left out");
        if (!invocation.quiet) print_diagnostic("warning", text);
    }
    return recording;
}

const Trace& choose_trace(const Recording& recording, std::optional<int> gpu) {
    if (recording.traces.empty())
        throw Error(ErrorCode::input, fmt::format("{}: no device has a history or segments", recording.path),
            "was recording enabled? see torch.cuda.memory._record_memory_history");
    if (!gpu)
        return *std::max_element(recording.traces.begin(), recording.traces.end(),
            [](const Trace& a, const Trace& b) { return a.buffers.size() < b.buffers.size(); });
    const auto found = std::find_if(
        recording.traces.begin(), recording.traces.end(), [&](const Trace& t) { return t.device == *gpu; });
    if (found != recording.traces.end()) return *found;
    std::vector<int> devices;
    for (const Trace& trace : recording.traces) devices.push_back(trace.device);
    throw Error(ErrorCode::input, fmt::format("{}: nothing of device {}", recording.path, *gpu),
        fmt::format("it holds device {}", fmt::join(devices, ", ")));
}

const Trace& choose_history(const Recording& recording, std::optional<int> gpu) {
    const Trace& trace = choose_trace(recording, gpu);
    if (trace.completeness == Completeness::no_events)
        throw Error(ErrorCode::input,
            fmt::format("{}: device {} has no history to replay", recording.path, trace.device),
            "fragsim inspect shows its memory; torch.cuda.memory._record_memory_history records a history");
    return trace;
}

}  // namespace fragsim
