// One policy at a time, the figures people ask for first, then every request that failed.
#include <fmt/format.h>

#include <algorithm>

#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"
#include "lib/report/latency.hpp"
#include "lib/report/report.hpp"
#include "lib/report/setting_words.hpp"
#include "lib/report/text_table.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kOomsShown = 10;

std::string memory_table(const Result& result, int width, bool color) {
    const bool pools = std::any_of(result.metrics.begin(), result.metrics.end(),
        [](const Metric& metric) { return metric.key == "reserved_bytes.small_pool.peak"; });
    std::vector<TextTable::Column> columns{{"", TextTable::Align::left}, {"peak"}, {"at the end"}, {"mean"}};
    if (pools) columns.insert(columns.end(), {{"small peak"}, {"large peak"}});
    TextTable table(columns);
    for (const std::string stat :
        {"requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes", "inactive_split_bytes"}) {
        const auto size = [&](const std::string& suffix) {
            return TextTable::Cell{format_size(result.count(stat + suffix))};
        };
        std::vector<TextTable::Cell> row{{stat}, size(".all.peak"), size(".all.current"), size(".mean_by_op")};
        if (pools) row.insert(row.end(), {size(".small_pool.peak"), size(".large_pool.peak")});
        table.add(std::move(row));
    }
    return table.render(width, color);
}

std::string figures(const Result& result) {
    std::string out;
    const auto line = [&](const char* what, const std::string& value) {
        out += fmt::format("{:<44}{:>14}\n", what, value);
    };
    const auto ratio = [&](const char* key) { return format_ratio(result.real(key)); };
    const auto count = [&](const char* key) { return format_count(result.count(key)); };
    line("least that any allocator needs", format_size(result.count("load_bytes")));
    line("peak reserved over that", ratio("overhead_over_load"));
    line("internal fragmentation at the peak", ratio("internal_fragmentation.at_peak"));
    line("external fragmentation at the peak", ratio("external_fragmentation.at_peak"));
    line("  mean over ops", ratio("external_fragmentation.mean_by_op"));
    line("free ranges at the peak", count("holes.at_peak"));
    line("  the largest of them", format_size(result.count("hole_largest_bytes.at_peak")));
    line("  free bytes in ranges below 20 MiB", ratio("unusable_index.20MiB.at_peak"));
    const std::int64_t rejected = result.count("num_oom_rejections");
    line("requests that failed", format_count(result.count("num_ooms") + rejected));
    if (rejected > 0) line("  of them rejected before a retry", format_count(rejected));
    line("flushes of the cache to serve a request", count("num_alloc_retries"));
    line("driver allocations", count("num_device_alloc"));
    line("driver frees", count("num_device_free"));
    const double served = result.real("num_hits"), all = served + result.real("num_misses");
    line("allocations served from memory that was there", format_ratio(all == 0 ? 0 : served / all));
    line("modelled time in driver calls", format_duration(result.real("driver_time_ns")));
    return out;
}

std::string ooms(const Result& result) {
    std::string out;
    for (std::size_t i = 0; i < result.ooms.size() && i < kOomsShown; ++i) {
        const Oom& oom = result.ooms[i];
        out += fmt::format(
            "out of memory at op {}: {} requested, {} reserved, {} allocated, largest free range {}; cause: {}\n",
            format_count(oom.op), format_size(oom.requested), format_size(oom.reserved), format_size(oom.allocated),
            format_size(oom.largest_free), name(oom.cause));
    }
    if (result.ooms.size() > kOomsShown)
        out += fmt::format(
            "and {} more; --json has all\n", format_count(static_cast<std::int64_t>(result.ooms.size() - kOomsShown)));
    for (const RecordedOomAnswer& recorded : result.recorded_ooms)
        out += fmt::format("the recorded out of memory before op {} ({}) would have been {} here\n",
            format_count(recorded.op), format_size(recorded.requested), recorded.served ? "served" : "refused");
    return out;
}

std::string render(const ResultSet& set, const RenderOptions& options) {
    std::string out;
    for (const TraceResults& on_trace : set.traces)
        for (const Result& result : on_trace.results) {
            if (!out.empty()) out += '\n';
            out += fmt::format("{}, device {}: {} ops, {}, {}\n\n", on_trace.recording->path, on_trace.trace->device,
                format_count(result.outcome.ops), bold(result.label, options.color), describe(result.limits));
            if (const std::string start = start_words(result.start_from); !start.empty())
                out += wrapped(start + "\n\n", options.width);
            if (!result.card.empty()) out += fmt::format("on {}: {}\n\n", result.device.label(), result.card);
            out += memory_table(result, options.width, options.color) + '\n' + figures(result);
            if (result.spoilt_words > 0)
                out += fmt::format("{} words of memory did not hold what was written: live buffers overlap\n",
                    format_count(result.spoilt_words));
            if (result.latency)
                out += '\n' + latency_tables(*result.latency, !result.card.empty(), options.width, options.color);
            if (result.outcome.stopped)
                out += fmt::format("stopped at the first out of memory, {} of {} ops done\n",
                    format_count(result.outcome.ops), format_count(on_trace.trace->ops));
            if (const std::string failed = ooms(result); !failed.empty()) out += '\n' + failed;
        }
    return out;
}

}  // namespace

ReportInfo detail_report() { return {"detail", "every figure people ask for first, policy by policy", render}; }

}  // namespace fragsim
