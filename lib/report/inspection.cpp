#include "lib/report/inspection.hpp"

#include <fmt/format.h>

#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"
#include "lib/report/json_parts.hpp"
#include "lib/report/text_table.hpp"
#include "lib/study/inspect.hpp"
#include "lib/study/outlier.hpp"

namespace fragsim {
namespace {

std::string line(const char* what, const std::string& value) { return fmt::format("  {:<22}{}\n", what, value); }

std::string picture_text(const char* when, const PictureSummary& picture) {
    std::string out = line(when, fmt::format("{} reserved in {} segments, {} allocated", format_size(picture.reserved),
                                     format_count(picture.segments), format_size(picture.allocated)));
    if (picture.pending > 0) out += line("", fmt::format("{} waiting for other streams", format_size(picture.pending)));
    out += line("",
        fmt::format("{} free in {} ranges, the largest {}; {} in whole segments", format_size(picture.free.total()),
            format_count(picture.free.holes()), format_size(picture.free.largest()), format_size(picture.releasable)));
    out += line("", fmt::format("external fragmentation {}, {} of the free bytes in ranges below 20 MiB",
                        format_ratio(picture.free.external()), format_ratio(picture.free.unusable_index(20 * kMiB))));
    return out;
}

std::string source_of_empty_caches(std::int64_t all, std::int64_t inferred) {
    if (inferred == 0) return "recorded";
    if (inferred == all) return "inferred from freed segments";
    return fmt::format("{} recorded, the others inferred from freed segments", format_count(all - inferred));
}

std::string trace_text(const Recording& recording, const Trace& trace) {
    const TraceSummary summary = summarize(trace);
    std::string out = fmt::format("device {}\n", trace.device);
    out += line("history", describe(trace.completeness));
    if (trace.completeness != Completeness::no_events) {
        out += line("ops", fmt::format("{}: {} allocations, {} frees", format_count(trace.ops),
                               format_count(summary.allocs), format_count(summary.frees)));
        if (const auto steps = count_steps(recording, trace))
            out += line("steps", fmt::format("{} ({})", format_count(steps->count), steps->name));
        out += line("streams", format_count(static_cast<std::int64_t>(trace.streams.size())));
        if (trace.pools.size() > 1)
            out += line(
                "private pools", fmt::format("{}{}", format_count(static_cast<std::int64_t>(trace.pools.size()) - 1),
                                     trace.inferred_pools ? "; which allocations went there is partly inferred" : ""));
        if (summary.pending_frees > 0)
            out +=
                line("delayed frees", fmt::format("{} waited for other streams", format_count(summary.pending_frees)));
        if (summary.empty_caches > 0)
            out += line("empty_cache", fmt::format("{} calls, {}", format_count(summary.empty_caches),
                                           source_of_empty_caches(summary.empty_caches, trace.inferred_empty_caches)));
        if (!trace.ooms.empty())
            out += line(
                "out of memory", fmt::format("{} times", format_count(static_cast<std::int64_t>(trace.ooms.size()))));
        if (summary.duration_us > 0)
            out += line("time", format_duration(1000.0 * static_cast<double>(summary.duration_us)));
        out += line("peak live", fmt::format("{} requested; no allocator can reserve less than {}",
                                     format_size(summary.requested_peak), format_size(summary.load)));
        out += line("largest request", format_size(summary.largest_request));
        if (!trace.segment_events.empty())
            out +=
                line("recorded driver calls", fmt::format("{}, peak reserved {}",
                                                  format_count(static_cast<std::int64_t>(trace.segment_events.size())),
                                                  format_size(summary.recorded_reserved_peak)));
    }
    if (summary.start) out += picture_text("memory at the start", *summary.start);
    if (summary.end) out += picture_text("memory at the end", *summary.end);
    return out;
}

Json picture_json(const std::optional<PictureSummary>& picture) {
    if (!picture) return nullptr;
    return {{"segments", picture->segments}, {"blocks", picture->blocks}, {"reserved_bytes", picture->reserved},
        {"allocated_bytes", picture->allocated}, {"pending_bytes", picture->pending},
        {"free_bytes", picture->free.total()}, {"releasable_bytes", picture->releasable},
        {"free_ranges", picture->free.holes()}, {"largest_free_bytes", picture->free.largest()},
        {"external_fragmentation", picture->free.external()}, {"fragmentation_l2", picture->free.l2()},
        {"unusable_index",
            {{"2MiB", picture->free.unusable_index(2 * kMiB)}, {"20MiB", picture->free.unusable_index(20 * kMiB)},
                {"100MiB", picture->free.unusable_index(100 * kMiB)}, {"1GiB", picture->free.unusable_index(kGiB)}}}};
}

}  // namespace

std::string inspection_text(const Recording& recording) {
    std::string out = fmt::format("{}: {}\n", recording.path, recording.format);
    if (recording.settings)
        out += line("allocator settings",
            recording.settings->alloc_conf.empty() ? "PyTorch's defaults" : recording.settings->alloc_conf);
    if (!recording.torch_versions.empty())
        out += line("PyTorch", fmt::format("{}{}, by the keys of the file", recording.torch_versions, recording.hip ? " for HIP" : ""));
    if (!recording.annotations.empty())
        out += line("annotations", format_count(static_cast<std::int64_t>(recording.annotations.size())));
    for (const Trace& trace : recording.traces) out += trace_text(recording, trace);
    return out;
}

std::string ranks_text(const std::vector<Recording>& recordings, const RenderOptions& options) {
    TextTable table({{"trace", TextTable::Align::left}, {"device"}, {"allocations"}, {"streams"}, {"peak live"},
        {"reserved"}, {"OOM"}, {"", TextTable::Align::left}});
    std::vector<TraceSummary> summaries;
    std::vector<double> reserved;
    std::vector<std::vector<TextTable::Cell>> rows;
    for (const Recording& recording : recordings)
        for (const Trace& trace : recording.traces) {
            const TraceSummary& summary = summaries.emplace_back(summarize(trace));
            const Bytes peak = std::max(summary.recorded_reserved_peak, summary.end ? summary.end->reserved : 0);
            reserved.push_back(static_cast<double>(peak));
            rows.push_back({{recording.path}, {format_count(trace.device)}, {format_count(summary.allocs)},
                {format_count(summary.streams)}, {format_size(summary.requested_peak)}, {format_size(peak)},
                {format_count(static_cast<std::int64_t>(trace.ooms.size()))}, {""}});
        }
    const auto outlier = find_outlier(reserved, summaries);
    if (outlier) rows[outlier->index].back().text = "< outlier";
    for (auto& row : rows) table.add(std::move(row));
    std::string out = table.render(options.width, options.color);
    if (outlier) {
        const std::size_t i = outlier->index;
        out += fmt::format("\noutlier: trace {} of {} reserved {:+.1f} % against the median\n", i + 1, reserved.size(),
            100 * outlier->difference);
        for (const std::string& reason : outlier->reasons) out += fmt::format("  {}\n", reason);
        if (outlier->reasons.empty()) out += "  its program asks for the same; order and timing differ\n";
    }
    return out;
}

std::string inspection_json(
    const std::vector<Recording>& recordings, const std::string& tool_version, const std::vector<std::string>& argv) {
    Json document = json_head("fragsim.inspection", tool_version, argv);
    document["traces"] = Json::array();
    for (const Recording& recording : recordings)
        for (const Trace& trace : recording.traces) {
            const TraceSummary summary = summarize(trace);
            Json json = json_trace(recording, trace);
            json["allocs"] = summary.allocs;
            json["frees"] = summary.frees;
            json["delayed_frees"] = summary.pending_frees;
            json["empty_caches"] = summary.empty_caches;
            json["private_pools"] = trace.pools.size() > 1 ? trace.pools.size() - 1 : 0;
            json["requested_bytes_peak"] = summary.requested_peak;
            json["load_bytes"] = summary.load;
            json["largest_request_bytes"] = summary.largest_request;
            json["recorded_driver_calls"] = trace.segment_events.size();
            json["recorded_reserved_bytes_peak"] = summary.recorded_reserved_peak;
            json["duration_us"] = summary.duration_us;
            const auto steps = count_steps(recording, trace);
            json["steps"] = steps ? Json{{"name", steps->name}, {"count", steps->count}} : Json();
            json["annotations"] = recording.annotations.size();
            json["start"] = picture_json(summary.start);
            json["end"] = picture_json(summary.end);
            document["traces"].push_back(std::move(json));
        }
    return to_text(document);
}

}  // namespace fragsim
