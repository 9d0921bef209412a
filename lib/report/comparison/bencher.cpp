// Today's figures for bencher.dev; what they are compared with is Bencher's own business.
#include "lib/report/bencher.hpp"
#include "lib/report/comparison/report.hpp"
#include "lib/report/comparison/words.hpp"

namespace fragsim {
namespace {

std::string render(const Comparison& comparison, const RenderOptions&) {
    std::vector<Benchmark> benchmarks;
    for (const ComparedRun& run : comparison.runs)
        if (!run.figures.empty()) benchmarks.push_back({title_of(run.run), run.figures});  // it was replayed
    return bencher_json(benchmarks);
}

}  // namespace

ComparisonReportInfo bencher_comparison() {
    return {"bencher", "today's figures for bencher.dev (Bencher Metric Format)", render};
}

}  // namespace fragsim
