// What differs, run by run. Where lines may be as long as they like (a file, a log) every line says which run it is of.
#include <fmt/format.h>

#include "lib/report/comparison/report.hpp"
#include "lib/report/comparison/words.hpp"

namespace fragsim {
namespace {

std::string flat(const Comparison& comparison) {
    using enum TextTable::Align;
    const bool memory_limits = any_memory_limit(comparison);
    std::vector<TextTable::Column> columns{{"trace", left}, {"policy", left}, {"capacity"}};
    if (memory_limits) columns.push_back({"memory limit"});
    columns.insert(columns.end(),
        {{"metric", left}, {"baseline"}, {"now"}, {"change"}, {"verdict", left}, {"began at op"}});
    TextTable table(columns);
    bool any = false;
    for (const ComparedRun& run : comparison.runs)
        for (const Difference* difference : shown_differences(run)) {
            const DifferenceWords words = words_of(*difference);
            std::vector<TextTable::Cell> row{{run.run.trace}, {run.run.policy}, {limit_text(run.run.limits.capacity)}};
            if (memory_limits) row.push_back({limit_text(run.run.limits.memory_limit)});
            row.insert(row.end(),
                {{words.metric}, {words.baseline}, {words.now}, {words.change}, {words.verdict}, {words.began}});
            table.add(std::move(row));
            any = true;
        }
    return any ? '\n' + table.render(0, false) : "";
}

std::string by_run(const Comparison& comparison, const RenderOptions& options) {
    std::string out;
    for (const ComparedRun& run : comparison.runs)
        if (const auto shown = shown_differences(run); !shown.empty())
            out += fmt::format("\n{}\n{}", bold(title_of(run.run), options.color),
                table_of(shown).render(options.width, options.color));
    return out;
}

std::string problems(const Comparison& comparison) {
    std::string out;
    for (const std::string& problem : comparison.problems) out += fmt::format("  {}\n", problem);
    for (const ComparedRun& run : comparison.runs)
        for (const std::string& problem : run.problems) out += fmt::format("  {}: {}\n", title_of(run.run), problem);
    return out.empty() ? "" : "\nnot compared:\n" + out;
}

std::string render(const Comparison& comparison, const RenderOptions& options) {
    std::string out = comparison.candidate.empty()
                          ? comparison.baseline
                          : fmt::format("{} against {}", comparison.candidate, comparison.baseline);
    out += fmt::format("{}: {}\n", comparison.updated ? ", updated" : "", summary(comparison));
    out += options.width == 0 ? flat(comparison) : by_run(comparison, options);
    out += problems(comparison);
    if (const std::string text = advice(comparison); !text.empty()) out += fmt::format("\n{}\n", text);
    return out;
}

}  // namespace

ComparisonReportInfo table_comparison() {
    return {"table", "what got worse or better, by how much and from which op on", render};
}

}  // namespace fragsim
