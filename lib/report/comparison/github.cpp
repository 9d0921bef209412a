// Annotations of GitHub Actions: workflow commands on standard output, `::error file=F,title=T::MESSAGE`.
// Source: GitHub's documentation, "Workflow commands for GitHub Actions"; escapes as its toolkit writes them.
#include <fmt/format.h>

#include "lib/report/comparison/report.hpp"
#include "lib/report/comparison/words.hpp"

namespace fragsim {
namespace {

// In a message %, CR and LF are escaped; in a property : and , too.
std::string escaped(std::string_view text, bool property) {
    std::string out;
    for (const char c : text) {
        const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
        if (special)
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
        else
            out += c;
    }
    return out;
}

std::string annotation(
    const char* level, const Comparison& comparison, const std::string& title, const std::string& message) {
    return fmt::format("::{} file={},title={}::{}\n", level, escaped(comparison.baseline, true), escaped(title, true),
        escaped(message, false));
}

std::string message_of(const ComparedRun& run) {
    std::string message = headline(run);
    if (const auto shown = shown_differences(run); shown.size() > 1) message += "\n" + table_of(shown).render(0, false);
    return message;
}

// The whole comes first: GitHub shows ten errors of a step and drops the others.
std::string render(const Comparison& comparison, const RenderOptions&) {
    const bool failed = comparison.regressions() > 0 || comparison.problem_count() > 0;
    std::string text = summary(comparison);
    for (const std::string& problem : comparison.problems) text += "\n" + problem;
    if (const std::string what = advice(comparison); !what.empty()) text += "\n" + what;
    std::string out = annotation(failed && !comparison.updated ? "error" : "notice", comparison,
        fmt::format("fragsim {}", comparison.command), text);
    for (const ComparedRun& run : comparison.runs) {
        const bool bad = run.regression() || !run.problems.empty();
        if (bad || run.improvement())
            out += annotation(
                bad && !comparison.updated ? "error" : "notice", comparison, title_of(run.run), message_of(run));
    }
    return out;
}

}  // namespace

ComparisonReportInfo github_comparison() {
    return {"github", "annotations of GitHub Actions: errors for what got worse, notices for what got better", render};
}

}  // namespace fragsim
