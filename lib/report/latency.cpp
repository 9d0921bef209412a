#include "lib/report/latency.hpp"

#include <fmt/format.h>

#include "lib/report/format.hpp"
#include "lib/report/text_table.hpp"

namespace fragsim {
namespace {

std::string duration(std::int64_t ns) { return format_duration(static_cast<double>(ns)); }

std::vector<TextTable::Cell> row(const std::string& what, const LatencySummary& summary) {
    return {{what}, {format_count(summary.count)}, {duration(summary.min)}, {duration(summary.p50)},
        {duration(summary.p90)}, {duration(summary.p99)}, {duration(summary.p999)}, {duration(summary.max)},
        {duration(summary.total)}};
}

std::vector<TextTable::Column> columns(const std::string& title) {
    return {
        {title, TextTable::Align::left}, {"count"}, {"min"}, {"p50"}, {"p90"}, {"p99"}, {"p99.9"}, {"max"}, {"total"}};
}

}  // namespace

std::string latency_tables(const LatencyReport& latency, bool real, int width, bool color) {
    TextTable own(columns("the policy's own time")), all(columns("with the driver"));
    for (std::size_t i = 0; i < kOpClasses; ++i) {
        if (latency.ops[i].all.count == 0) continue;
        own.add(row(name(static_cast<OpClass>(i)), latency.ops[i].own));
        all.add(row(name(static_cast<OpClass>(i)), latency.ops[i].all));
    }
    std::string out = own.render(width, color);
    if (real) out += '\n' + all.render(width, color);
    if (real && !latency.calls.empty()) {
        std::vector<TextTable::Column> with_model = columns("driver call");
        with_model.insert(with_model.end(), {{"modelled"}, {"model's error"}});
        TextTable calls(with_model);
        for (const LatencyReport::Call& call : latency.calls) {
            std::vector<TextTable::Cell> cells = row(name(call.kind), call.measured);
            cells.push_back({format_duration(call.modelled_ns)});
            cells.push_back({format_change(call.modelled_ns, static_cast<double>(call.measured.total))});
            calls.add(std::move(cells));
        }
        out += '\n' + calls.render(width, color);
        out += fmt::format("\ndriver, all calls: {} measured, {} modelled ({})\n", duration(latency.driver_ns),
            format_duration(latency.modelled_driver_ns),
            format_change(latency.modelled_driver_ns, static_cast<double>(latency.driver_ns)));
    }
    out += fmt::format("{} repetitions; A/A noise {:+.1f} %; looking at the clock takes about {} an op\n",
        latency.repetition_ns.size(), 100 * latency.a_a_noise(), duration(latency.clock_ns));
    return out;
}

}  // namespace fragsim
