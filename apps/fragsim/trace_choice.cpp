#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
    // One that ran out of memory is what the recording is about.
    if (!gpu)
        return *std::max_element(recording.traces.begin(), recording.traces.end(), [](const Trace& a, const Trace& b) {
            return std::pair(!a.ooms.empty(), a.buffers.size()) < std::pair(!b.ooms.empty(), b.buffers.size());
        });
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

void add_gpu_option(CLI::App& command, std::optional<int>& gpu, const char* group) {
    command
        .add_option("--gpu", gpu, "device whose history to take (one that ran out of\nmemory, else the busiest one)")
        ->type_name("N")
        ->group(group);
}

void add_jobs_option(CLI::App& command, int& jobs, const char* group) {
    command.add_option("--jobs", jobs, "replays at once (one a core)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024).description(""))
        ->group(group);
}

void LimitChoice::add_options(CLI::App& command, const char* group, bool inferred) {
    command
        .add_option("--capacity", capacity,
            std::string(
                "what the card gives the process: 3 MiB less than the\ndriver reports free; it refuses more (") +
                (inferred ? "what the\nrecording shows, if it ran out of memory; else no\nbound)" : "no bound)"))
        ->type_name("SIZE")
        ->group(group);
    command
        .add_option("--memory-limit", memory_limit,
            "what set_per_process_memory_fraction allows, or the\nshare of --capacity; PyTorch refuses more (none)")
        ->type_name("SIZE|SHARE")
        ->group(group);
}

}  // namespace fragsim
