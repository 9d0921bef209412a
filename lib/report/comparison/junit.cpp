// JUnit's XML as CI servers read it: a test case a run, a failure where it got worse, an error where it could not be
// compared. Source: Jenkins' schema junit-10.xsd (xunit plugin).
#include <fmt/format.h>

#include "lib/report/comparison/report.hpp"
#include "lib/report/comparison/words.hpp"
#include "lib/report/json_parts.hpp"

namespace fragsim {
namespace {

// What is no UTF-8, or a control character that XML does not have, is replaced.
std::string escaped(const std::string& text) {
    const std::string clean =
        Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
    std::string out;
    for (const char c : clean) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\n': out += "&#10;"; break;
            case '\r': out += "&#13;"; break;
            case '\t': out += "&#9;"; break;
            default: out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
        }
    }
    return out;
}

std::string outcome(const char* element, const ComparedRun& run, const std::string& text) {
    return fmt::format(
        "   <{0} type=\"{0}\" message=\"{1}\">{2}</{0}>\n", element, escaped(headline(run)), escaped(text));
}

std::string test_case(const ComparedRun& run, bool updated) {
    std::string out =
        fmt::format("  <testcase classname=\"{}\" name=\"{}\"", escaped(run.run.trace), escaped(setup_of(run.run)));
    const std::string table = table_of(shown_differences(run)).render(0, false);
    if (!run.problems.empty()) {
        std::string text;
        for (const std::string& problem : run.problems) text += problem + '\n';
        return out + ">\n" + outcome("error", run, text) + "  </testcase>\n";
    }
    if (run.regression() && !updated) return out + ">\n" + outcome("failure", run, table) + "  </testcase>\n";
    if (!shown_differences(run).empty())
        return out + fmt::format(">\n   <system-out>{}</system-out>\n  </testcase>\n", escaped(table));
    return out + "/>\n";
}

std::string render(const Comparison& comparison, const RenderOptions&) {
    const std::size_t unnamed = comparison.problems.empty() ? 0 : 1;  // one case for what belongs to no run
    std::size_t failures = 0;
    for (const ComparedRun& run : comparison.runs)
        failures += run.problems.empty() && run.regression() && !comparison.updated;
    const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\"",
        comparison.runs.size() + unnamed, failures, comparison.with_problems() + unnamed);
    std::string out = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n <testsuite name=\"fragsim {1}\" {0}>\n", counts,
        escaped(comparison.command));
    for (const ComparedRun& run : comparison.runs) out += test_case(run, comparison.updated);
    if (unnamed)
        out += test_case({{comparison.baseline, {}, "what is listed", {}}, {}, comparison.problems, {}}, false);
    return out + " </testsuite>\n</testsuites>\n";
}

}  // namespace

ComparisonReportInfo junit_comparison() { return {"junit", "JUnit's XML for CI servers: a test case a run", render}; }

}  // namespace fragsim
