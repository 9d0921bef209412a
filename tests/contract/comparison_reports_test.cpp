// What every report of a comparison owes its users: it is well formed whatever the names are, and says what got worse.
#include <nlohmann/json.hpp>
#include <algorithm>
#include <set>

#include "lib/report/comparison/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

const std::string kNasty = "a \"b\" 'c' <d> & 50% | `e` ]]> \\ f,g:h\nsecond line\r\x01\xff.pickle";

Difference worse(const char* metric, std::int64_t was, std::int64_t is, std::optional<OpRange> began) {
    Difference difference;
    difference.metric = metric;
    difference.baseline = Metric{metric, was};
    difference.candidate = Metric{metric, is};
    difference.verdict = Judgement::worse;
    difference.change = static_cast<double>(is - was) / static_cast<double>(was);
    difference.began = began;
    return difference;
}

ComparedRun run_of(const std::string& trace, const std::string& policy) {
    ComparedRun run{{trace, {}, policy, {}}, {}, {}, {}};
    run.figures = {{"reserved_bytes.all.peak", std::int64_t{1001}}, {"utilization.peaks", 0.5}};
    return run;
}

// One run of each outcome.
Comparison example(const std::string& trace = "run.pickle", const std::string& policy = "caching") {
    Comparison comparison;
    comparison.tool_version = "1.2.3";
    comparison.command = "check";
    comparison.baseline = "base.json";
    comparison.runs.push_back(run_of(trace, policy));
    comparison.runs.back().differences = {worse("reserved_bytes.all.peak", 1000, 1001, OpRange{12345, 12345}),
        worse("num_misses", 4, 5, {}), worse("num_ooms", 10, 20, OpRange{10, 99})};
    comparison.runs.push_back(run_of(trace, policy + "-better"));
    comparison.runs.back().differences = {worse("num_hits", 10, 12, {})};
    comparison.runs.back().differences.back().verdict = Judgement::better;
    comparison.runs.push_back(run_of(trace, policy + "-same"));
    comparison.runs.push_back(run_of(trace, policy + "-broken"));
    comparison.runs.back().problems = {"no such file " + trace, "and\nmore"};
    comparison.problems = {"other.pickle: not listed in base.json"};
    return comparison;
}

std::string render(const std::string& name, const Comparison& comparison, int width = 80) {
    for (const ComparisonReportInfo& report : comparison_reports())
        if (report.name == name) return report.render(comparison, {false, width});
    FAIL("there is no report " << name);
    return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What Python's XML parser finds: "element attribute=value... text" a line.
std::string parsed_xml(const std::string& xml) {
    TempFolder folder;
    write_file(folder / "report.xml", xml);
    write_file(folder / "read.py", R"(
import sys, xml.etree.ElementTree as tree
suites = tree.parse(sys.argv[1]).getroot()
assert suites.tag == 'testsuites' and [s.tag for s in suites] == ['testsuite']
suite = suites[0]
cases = list(suite)
assert all(c.tag == 'testcase' and c.get('name') and c.get('classname') for c in cases)
found = lambda kind: sum(1 for c in cases if c.find(kind) is not None)
assert int(suite.get('tests')) == len(cases)
assert int(suite.get('failures')) == found('failure') and int(suite.get('errors')) == found('error')
assert all(e.tag in ('failure', 'error', 'system-out') for c in cases for e in c)
print(len(cases), found('failure'), found('error'))
print(repr(cases[0].get('classname')))
print(cases[0].find('failure').get('message'))
print(cases[0].find('failure').text)
)");
    const Ended ended = shell("python3 read.py report.xml", {folder.path(), "/dev/null", {}, false, ""});
    INFO(ended.err);
    REQUIRE(ended.status == 0);
    return ended.out;
}

}  // namespace

TEST_CASE("there are comparison reports, each with a name of its own and a summary", "[contract][comparison]") {
    std::set<std::string_view> names;
    for (const ComparisonReportInfo& report : comparison_reports()) {
        CHECK(names.insert(report.name).second);
        CHECK_FALSE(report.summary.empty());
        REQUIRE(report.render != nullptr);
    }
    for (const char* name : {"table", "json", "markdown", "github", "junit", "bencher"}) CHECK(names.contains(name));
}

TEST_CASE("every comparison report renders the same bytes again, ends its last line and has no colour",
    "[contract][comparison]") {
    for (const ComparisonReportInfo& report : comparison_reports())
        for (const Comparison& comparison : {example(), example(kNasty, kNasty), Comparison{}}) {
            INFO(report.name);
            const std::string text = report.render(comparison, {});
            CHECK(text.ends_with('\n'));
            CHECK(report.render(comparison, {}) == text);
            CHECK_FALSE(contains(text, "\x1b"));
        }
}

TEST_CASE(
    "every comparison report for people names the run, the metric, both figures and the op", "[contract][comparison]") {
    for (const char* name : {"table", "markdown", "github", "junit"}) {
        INFO(name);
        std::string text = render(name, example(), 0);
        std::erase(text, '\\');
        for (const char* part : {"run.pickle", "caching", "reserved_bytes.all.peak", "1000 B", "1001 B", "+0.1 %",
                 "12,345", "10..99", "caching-better", "caching-broken", "no such file", "not listed"}) {
            INFO(part);
            CHECK(contains(text, part));
        }
    }
}

TEST_CASE("the table keeps to 80 columns on a terminal, and has the trace in every line elsewhere",
    "[contract][comparison]") {
    std::string line;
    for (const char c : render("table", example()))
        if (c == '\n') {
            CHECK(line.size() <= 80);
            line.clear();
        } else {
            line += c;
        }
    CHECK(contains(render("table", example(), 0), "run.pickle  caching             none  num_misses"));
}

TEST_CASE("figures that look alike when rounded are given in full", "[contract][comparison]") {
    Comparison comparison = example();
    comparison.runs[0].differences = {worse("reserved_bytes.all.peak", 20 * kGiB, 20 * kGiB + 512, {})};
    CHECK(contains(render("table", comparison), "21,474,836,480 B  21,474,836,992 B  +512 B"));
}

TEST_CASE("differences within their tolerance are in the JSON only", "[contract][comparison]") {
    Comparison comparison = example();
    for (Difference& difference : comparison.runs[0].differences) difference.within_tolerance = true;
    CHECK_FALSE(contains(render("table", comparison), "reserved_bytes"));
    CHECK(contains(render("json", comparison), "reserved_bytes"));
    CHECK(contains(render("table", comparison), "1 better, 2 the same"));
}

TEST_CASE("the JSON of a comparison keeps its contract", "[contract][comparison]") {
    const auto json = nlohmann::json::parse(render("json", example(kNasty, "caching")));
    CHECK(json["schema"]["name"] == "fragsim.comparison");
    CHECK(json["summary"]["worse"] == 1);
    CHECK(json["summary"]["better"] == 1);
    CHECK(json["summary"]["problems"] == 3);
    REQUIRE(json["runs"].size() == 4);
    CHECK(json["runs"][0]["verdict"] == "worse");
    const auto& difference = json["runs"][0]["differences"][0];
    CHECK(difference["metric"] == "reserved_bytes.all.peak");
    CHECK(difference["baseline"] == 1000);
    CHECK(difference["candidate"] == 1001);
    CHECK(difference["change"] == 0.001);
    CHECK(difference["began"]["first_op"] == 12345);
    CHECK(json["runs"][1]["verdict"] == "better");
    CHECK(json["runs"][2]["verdict"] == "same");
    CHECK(json["runs"][3]["verdict"] == "not compared");
}

TEST_CASE("JUnit's XML is well formed whatever the names are, and its counts are right", "[contract][comparison]") {
    const std::string plain = parsed_xml(render("junit", example()));
    CHECK(plain.starts_with("5 1 2\n'run.pickle'\nreserved_bytes.all.peak is worse: 1001 B instead of 1000 B"));
    CHECK(contains(plain, "12,345"));
    const std::string nasty = parsed_xml(render("junit", example(kNasty, kNasty)));
    CHECK(contains(nasty, "<d> & 50% | `e` ]]> "));
    CHECK(contains(nasty, "second line"));
}

TEST_CASE("an annotation is one line, with GitHub's escapes in properties and message", "[contract][comparison]") {
    const std::string text = render("github", example(kNasty, "caching"));
    CHECK(std::count(text.begin(), text.end(), '\n') == 4);  // the whole, and what is not the same
    CHECK_FALSE(contains(text, "\r"));
    CHECK(text.starts_with("::error file=base.json,title=fragsim check::4 runs: 1 worse, 1 better, 1 the same, 1 not"));
    CHECK(contains(
        text, "title=a \"b\" 'c' <d> & 50%25 | `e` ]]> \\ f%2Cg%3Ah%0Asecond line%0D\x01\xff.pickle%2C caching::"));
    CHECK(contains(text, "\n::notice file=base.json,title=a "));
    CHECK(contains(text, "+0.1 %25, from op 12,345 on; and 2 more%0Ametric"));
}

TEST_CASE("a row of the Markdown table has its nine cells whatever the names are", "[contract][comparison]") {
    std::string line;
    int rows = 0;
    for (const char c : render("markdown", example(kNasty, kNasty))) {
        if (c != '\n') {
            line += c;
            continue;
        }
        if (line.starts_with('|')) {
            int bars = 0;
            for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
            CHECK(bars == 10);
            CHECK_FALSE(contains(line, "<"));
            ++rows;
        }
        line.clear();
    }
    CHECK(rows == 2 + 4);
}

TEST_CASE("Bencher gets a number for every metric of every run that was replayed", "[contract][comparison]") {
    Comparison comparison = example(kNasty, "caching");
    comparison.runs[3].figures.clear();
    const auto json = nlohmann::json::parse(render("bencher", comparison));
    REQUIRE(json.size() == 3);
    for (const auto& [benchmark, measures] : json.items()) {
        REQUIRE(measures.size() == 2);
        for (const auto& [measure, metric] : measures.items()) {
            CHECK(measure.size() <= 64);
            CHECK(metric["value"].is_number());
        }
    }
    CHECK(nlohmann::json::parse(
              render("bencher", example()))["run.pickle, caching"]["reserved_bytes.all.peak"]["value"] == 1001);
}

TEST_CASE("an updated baseline is red nowhere", "[contract][comparison]") {
    Comparison comparison = example();
    comparison.problems.clear();
    comparison.runs.pop_back();
    comparison.updated = true;
    CHECK_FALSE(contains(render("github", comparison), "::error"));
    CHECK(contains(render("junit", comparison), "failures=\"0\""));
    CHECK(contains(render("table", comparison), "base.json, updated: "));
}
