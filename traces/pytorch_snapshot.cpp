// Memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot): pickle of every generation since 2.0. What comes
// after the records serves for JSON (pytorch_json.cpp), too.
//
// pickle -> SnapshotSink (keys to records) -> HistoryReader (entries to events) -> rebuild_start -> insert_empty_caches
// -> infer_pools -> Trace
#include <algorithm>

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "traces/pickle.hpp"
#include "traces/pytorch_empty_cache.hpp"
#include "traces/pytorch_history.hpp"
#include "traces/pytorch_picture.hpp"
#include "traces/pytorch_pools.hpp"
#include "traces/pytorch_records.hpp"
#include "traces/pytorch_start.hpp"
#include "traces/pytorch_version.hpp"
#include "traces/registry.hpp"

namespace fragsim {
namespace {

// Protocol 2 and later begin with an opcode of their own; what such a pickle holds is for the reader to say. Older ones
// begin with a printable character, so one of the document's keys has to show.
bool detect(std::string_view head) {
    if (head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return true;
    if (head.empty() || std::string_view("(}]").find(head[0]) == std::string_view::npos) return false;
    const auto holds = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
    return holds("segments") || holds("device_traces") || holds("total_size");
}

AllocatorRules rules_of(const Snapshot& snapshot) {
    const bool collects = std::any_of(snapshot.settings.begin(), snapshot.settings.end(),
        [](const auto& setting) { return setting.first == "garbage_collection_threshold" && setting.second != "0"; });
    return {snapshot.roundup, snapshot.max_split_size, collects};
}

bool says_overflowed(const Snapshot& snapshot) {
    return std::any_of(snapshot.settings.begin(), snapshot.settings.end(), [](const auto& setting) {
        return setting.first == "trace_alloc_overflowed" && setting.second != "false" && setting.second != "0";
    });
}

Trace read_device(const Snapshot& snapshot, int device, Diagnostics& diagnostics) {
    const AllocatorRules rules = rules_of(snapshot);
    TraceBuilder builder(device);
    FinalPicture final = read_picture(snapshot, device, builder, diagnostics);
    HistoryReader history(snapshot, device, builder, diagnostics);
    std::vector<StartBlock> in_use = history.read(final);

    Trace& trace = builder.trace();
    const std::span<const EntryRecord> entries = snapshot.history(static_cast<std::size_t>(device));
    trace.initial = rebuild_start(
        {entries, final.picture ? &*final.picture : nullptr, trace, rules, device}, std::move(in_use), diagnostics);
    trace.final = std::move(final.picture);
    if (entries.empty())
        trace.completeness = Completeness::no_events;
    else if (trace.initial.segments.empty())
        trace.completeness = Completeness::complete;
    else
        trace.completeness = history.begins_with_a_completed_free() || says_overflowed(snapshot)
                                 ? Completeness::ring_overflowed
                                 : Completeness::mid_run;
    Trace finished = builder.finish();
    insert_empty_caches(finished, find_release_runs(snapshot, device), rules);
    const bool recorded =
        std::any_of(entries.begin(), entries.end(), [](const EntryRecord& entry) { return entry.pool != 0; });
    infer_pools(finished, recorded);
    return finished;
}

Recording read(Input& input) { return make_recording(read_snapshot(input), input.name()); }

}  // namespace

Recording make_recording(Snapshot snapshot, const std::string& file) {
    Recording recording;
    recording.diagnostics = std::move(snapshot.diagnostics);
    std::vector<bool> has_segment(snapshot.histories.size());
    for (const std::uint32_t number : snapshot.segments) {
        const SegmentRecord& segment = snapshot.records.segments[number];
        if (segment.device < 0 || segment.device >= static_cast<std::int64_t>(kMaxDevices)) {
            recording.diagnostics.count("segment of a device that cannot be",
                fmt::format("device {}, segment {:#x}", segment.device, segment.address));
            continue;
        }
        const auto device = static_cast<std::size_t>(segment.device);
        if (device >= has_segment.size()) has_segment.resize(device + 1);
        has_segment[device] = true;
    }
    const int devices = static_cast<int>(has_segment.size());
    try {
        for (int device = 0; device < devices; ++device)
            if (has_segment[static_cast<std::size_t>(device)] ||
                !snapshot.history(static_cast<std::size_t>(device)).empty())
                recording.traces.push_back(read_device(snapshot, device, recording.diagnostics));
    } catch (const Malformed& problem) {
        throw Error(ErrorCode::input, fmt::format("{}: {}", file, problem.what), problem.hint);
    }

    for (const AnnotationRecord& annotation : snapshot.annotations) {
        const std::string_view name = snapshot.records.string(annotation.name);
        if (annotation.device < -1 || annotation.device >= static_cast<std::int64_t>(kMaxDevices)) {
            recording.diagnostics.count("annotation of a device that cannot be",
                fmt::format("device {}, annotation {}", annotation.device, name));
            continue;
        }
        recording.annotations.push_back(
            {snapshot.records.string(annotation.stage) == "END" ? Annotation::Stage::end : Annotation::Stage::start,
                static_cast<int>(annotation.device), annotation.time_us, std::string(name)});
    }
    const TorchVersionGuess guess = guess_torch_version(snapshot);
    recording.torch_version = guess.version;
    recording.torch_versions = guess.versions;
    recording.hip = recorded_on_hip(snapshot);
    if (snapshot.has_settings) {
        AllocatorSettings& settings = recording.settings.emplace();
        for (const auto& [key, value] : snapshot.settings)
            if (key.starts_with("PYTORCH_") && key.ends_with("ALLOC_CONF")) settings.alloc_conf = value;
        settings.values = std::move(snapshot.settings);
    }
    return recording;
}

FormatInfo pytorch_snapshot_format() {
    return {"pytorch-snapshot", "memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot)", detect, read};
}

}  // namespace fragsim
