// The table of torch.cuda.memory_summary() for the state a replay ended in, in PyTorch's own layout, so that both can
// be laid side by side. Source: torch/cuda/memory.py of PyTorch 2.11, memory_summary().
//
// It says what the replay knows. Of a recording that begins in mid-run that is not the totals and peaks of before; of a
// run that ended out of memory it is not the request that failed, which is not part of a replay.
#include <fmt/format.h>

#include <array>

#include "lib/report/report.hpp"

namespace fragsim {
namespace {

constexpr std::array<const char*, 4> kColumns{".current", ".peak", ".allocated", ".freed"};

// The unit follows from the row of all pools, `leading`; what does not fill it is cut off.
std::string scaled(std::int64_t value, std::int64_t leading, bool bytes) {
    static constexpr std::array kSizes{"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
    static constexpr std::array kCounts{"  ", "K ", "M "};
    const std::int64_t step = bytes ? 1024 : 1000, full = bytes ? 768 * 1024 : 750 * 1000;
    const std::size_t units = bytes ? kSizes.size() : kCounts.size();
    auto rest = static_cast<double>(leading);
    std::size_t unit = 0;
    while (unit + 1 < units && rest >= static_cast<double>(full))
        ++unit, value /= step, rest /= static_cast<double>(step);
    return bytes ? fmt::format("{:6} {}", value, kSizes[unit]) : fmt::format("{:7} {}", value, kCounts[unit]);
}

std::string row(
    const Result& result, const std::string& title, const std::string& leading, const std::string& stat, bool bytes) {
    std::string line = fmt::format("| {:<21} ", title);
    for (const char* column : kColumns)
        line += fmt::format("| {} ", scaled(result.count(stat + column), result.count(leading + column), bytes));
    return line + "|\n";
}

std::string table(const Result& result, int device) {
    static constexpr struct {
        const char *stat, *title;
    } kGroups[] = {{"allocated_bytes", "Allocated memory"}, {"active_bytes", "Active memory"},
        {"requested_bytes", "Requested memory"}, {"reserved_bytes", "GPU reserved memory"},
        {"inactive_split_bytes", "Non-releasable memory"}, {"allocation", "Allocations"}, {"active", "Active allocs"},
        {"segment", "GPU reserved segments"}, {"inactive_split", "Non-releasable allocs"}};
    const std::string thick = '|' + std::string(75, '=') + "|\n", thin = '|' + std::string(75, '-') + "|\n";
    std::string out = thick;
    out += fmt::format("| {:16} PyTorch CUDA memory summary, device ID {:<17} |\n", "", device) + thin;
    out += fmt::format("|  {:9} CUDA OOMs: {:<12} | {:6} cudaMalloc retries: {:<8}  |\n", "", result.count("num_ooms"),
        "", result.count("num_alloc_retries"));
    out += thick + "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n";
    for (const auto& group : kGroups) {
        const std::string stat = group.stat, all = stat + ".all";
        const bool bytes = stat.ends_with("_bytes");
        out += thin + row(result, group.title, all, all, bytes);
        out += row(result, "      from large pool", all, stat + ".large_pool", bytes);
        out += row(result, "      from small pool", all, stat + ".small_pool", bytes);
    }
    for (const auto& [stat, title] :
        {std::pair{"oversize_allocations", "Oversize allocations"}, {"oversize_segments", "Oversize GPU segments"}})
        out += thin + row(result, title, stat, stat, false);
    return out + thick;
}

std::string render(const ResultSet& set, const RenderOptions&) {
    std::size_t results = 0;
    for (const TraceResults& on_trace : set.traces) results += on_trace.results.size();
    std::string out;
    for (const TraceResults& on_trace : set.traces)
        for (const Result& result : on_trace.results) {
            // Alone it is PyTorch's text and nothing else.
            if (results > 1)
                out += fmt::format("{}{}, {}\n", out.empty() ? "" : "\n", on_trace.recording->path, result.label);
            if (!result.torch_settings)
                out += fmt::format("{} does not keep PyTorch's statistics\n", result.policy);
            else
                out += table(result, on_trace.trace->device);
        }
    return out;
}

}  // namespace

ReportInfo memory_summary_report() {
    return {"memory-summary", "torch.cuda.memory_summary() of the state at the end", render};
}

}  // namespace fragsim
