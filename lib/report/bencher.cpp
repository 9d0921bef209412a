#include "lib/report/bencher.hpp"

#include <fmt/format.h>

#include "lib/report/comparison/words.hpp"
#include "lib/report/json_parts.hpp"
#include "lib/report/report.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kLongestName = 1024 - 8;  // Bencher's limit, with room for a number

std::string render(const ResultSet& set, const RenderOptions&) {
    std::vector<Benchmark> benchmarks;
    for (const TraceResults& on_trace : set.traces)
        for (const Result& result : on_trace.results) {
            Benchmark& benchmark = benchmarks.emplace_back();
            benchmark.name = title_of({on_trace.recording->path, on_trace.trace->device, result.label, result.limits,
                result.device.label()});
            for (const Metric& metric : result.metrics)
                if (is_judged(metric.key, true)) benchmark.metrics.push_back(metric);
        }
    return bencher_json(benchmarks);
}

}  // namespace

std::string bencher_json(const std::vector<Benchmark>& benchmarks) {
    Json document = Json::object();
    for (const Benchmark& benchmark : benchmarks) {
        const std::string name = benchmark.name.substr(0, kLongestName);
        std::string unique = name;
        for (int n = 2; document.contains(unique); ++n) unique = fmt::format("{} ({})", name, n);
        Json& measures = document[unique] = Json::object();
        for (const Metric& metric : benchmark.metrics)
            std::visit([&](auto value) { measures[metric.key] = {{"value", value}}; }, metric.value);
    }
    return to_text(document);
}

ReportInfo bencher_report() {
    return {"bencher", "the figures that have a better direction, for bencher.dev (Bencher Metric Format)", render};
}

}  // namespace fragsim
