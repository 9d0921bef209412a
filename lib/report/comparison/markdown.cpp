// For a pull request's comment or $GITHUB_STEP_SUMMARY: GitHub's Markdown.
#include <fmt/format.h>

#include "lib/report/comparison/report.hpp"
#include "lib/report/comparison/words.hpp"

namespace fragsim {
namespace {

// A summary may have 1 MiB a step, a comment 64 KiB.
constexpr std::size_t kMostRows = 200;

// Text that means nothing to Markdown, in one line of a table.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\n' || c == '\r') {
            out += ' ';
            continue;
        }
        if (c == '<' || c == '&') {
            out += c == '<' ? "&lt;" : "&amp;";
            continue;
        }
        if (std::string_view("\\`*_{}[]()#!|~@>").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

std::string render(const Comparison& comparison, const RenderOptions&) {
    std::string out = fmt::format("### fragsim {}\n\n{}{}\n", comparison.command,
        comparison.candidate.empty() ? "" : escaped(comparison.candidate) + " against ",
        escaped(fmt::format("{}: {}", comparison.baseline, summary(comparison))));
    const bool memory_limits = any_memory_limit(comparison);
    std::size_t rows = 0;
    for (const ComparedRun& run : comparison.runs)
        for (const Difference* difference : shown_differences(run)) {
            if (rows == 0)
                out += fmt::format(
                    "\n| trace | policy | capacity {}| metric | baseline | now | change | verdict | began at op |\n"
                    "| --- | --- | ---: {}| --- | ---: | ---: | ---: | --- | ---: |\n",
                    memory_limits ? "| memory limit " : "", memory_limits ? "| ---: " : "");
            if (++rows > kMostRows) continue;
            const DifferenceWords words = words_of(*difference);
            std::vector<std::string> cells{run.run.trace, run.run.policy, limit_text(run.run.limits.capacity)};
            if (memory_limits) cells.push_back(limit_text(run.run.limits.memory_limit));
            cells.insert(cells.end(),
                {words.metric, words.baseline, words.now, words.change, words.verdict, words.began});
            for (const std::string& cell : cells) out += fmt::format("| {} ", escaped(cell));
            out += "|\n";
        }
    if (rows > kMostRows) out += fmt::format("\n{} more rows are left out here.\n", rows - kMostRows);
    if (comparison.problem_count() > 0) {
        out += "\nNot compared:\n\n";
        for (const std::string& problem : comparison.problems) out += fmt::format("- {}\n", escaped(problem));
        for (const ComparedRun& run : comparison.runs)
            for (const std::string& problem : run.problems)
                out += fmt::format("- {}\n", escaped(fmt::format("{}: {}", title_of(run.run), problem)));
    }
    if (const std::string text = advice(comparison); !text.empty()) out += fmt::format("\n{}\n", escaped(text));
    return out;
}

}  // namespace

ComparisonReportInfo markdown_comparison() {
    return {"markdown", "a table for $GITHUB_STEP_SUMMARY or a pull request", render};
}

}  // namespace fragsim
