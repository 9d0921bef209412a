// What every report owes its users: it renders whatever a command can have found out.
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "lib/replay/verify.hpp"
#include "lib/report/report.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/children.hpp"
#include "tests/support/program.hpp"
#include "tests/support/script.hpp"
#include "traces/registry.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// A recording and what some policies made of it.
struct Found {
    explicit Found(const std::vector<const char*>& policies_run, const char* calls = "a 0 60M; a 1 60M; f 0; a 2 5M",
        std::optional<Bytes> capacity = 100 * kMiB) {
        recording.path = "made \"by\" hand.txt";
        recording.format = "test";
        recording.traces.push_back(script(calls));
        RunOptions options;
        options.limits.capacity = capacity;
        options.record_history = true;
        options.record_series = true;
        TraceResults on_trace{&recording, &recording.traces.front(), {}};
        for (const char* text : policies_run)
            on_trace.results.push_back(
                run_policy(recording.traces.front(), parse_policy_spec(text, policies()), options));
        set.tool_version = "1.2.3";
        set.argv = {"replay", "made \"by\" hand.txt"};
        set.traces.push_back(std::move(on_trace));
    }
    Found(const Found&) = delete;

    Recording recording;
    ResultSet set;
};

const std::vector<const char*> kThree{
    "caching", "split-capped:max_split_size_mb=20", "caching:garbage_collection_threshold=0.5"};

template <class Check>
void for_each_report(Check check) {
    for (const ReportInfo& report : reports()) {
        INFO("report " << report.name);
        check(report);
    }
}

// Those that are text and take any number of policies and traces.
template <class Check>
void for_each_text_report(Check check) {
    for_each_report([&](const ReportInfo& report) {
        if (!report.needs.file) check(report);
    });
}

// Without the first line, which names the trace and is as long as its path.
std::string below_head(const std::string& text) { return text.substr(text.find('\n') + 1); }

std::string longest_line(const std::string& text) {
    std::string longest, line;
    std::istringstream lines(text);
    while (std::getline(lines, line))
        if (line.size() > longest.size()) longest = line;
    return longest;
}

}  // namespace

TEST_CASE("there are reports, each with a name of its own and a summary", "[contract][report]") {
    REQUIRE(reports().size() >= 3);
    std::set<std::string_view> names;
    for_each_report([&](const ReportInfo& report) {
        CHECK(names.insert(report.name).second);
        CHECK_FALSE(report.summary.empty());
        REQUIRE(report.render != nullptr);
    });
}

TEST_CASE("every text report renders one policy, and several with an out of memory", "[contract][report]") {
    const Found one({"caching"}, "a 0 5M", std::nullopt), several(kThree);
    REQUIRE(several.set.traces.front().results.front().outcome.ooms == 1);
    for_each_text_report([&](const ReportInfo& report) {
        for (const Found* found : {&one, &several}) {
            const std::string text = report.render(found->set, {});
            CHECK(text.ends_with('\n'));
            // With one policy it goes without saying which.
            if (found == &several)
                for (const Result& result : found->set.traces.front().results)
                    CHECK(text.find(result.policy) != std::string::npos);
        }
    });
}

TEST_CASE("every text report renders several traces", "[contract][report]") {
    const Found first({"caching"}), second({"caching"}, "a 0 1; f 0");
    ResultSet set = first.set;
    set.traces.push_back(second.set.traces.front());
    for_each_text_report(
        [&](const ReportInfo& report) { CHECK(report.render(set, {}).size() > report.render(first.set, {}).size()); });
}

TEST_CASE("every text report survives a set without a policy", "[contract][report]") {
    const Found none({});
    for_each_text_report([&](const ReportInfo& report) { CHECK(comes_back([&] { report.render(none.set, {}); })); });
}

TEST_CASE("every report survives a trace without an op", "[contract][report]") {
    const Found empty(kThree, "");
    for_each_report([&](const ReportInfo& report) { CHECK_FALSE(report.render(empty.set, {}).empty()); });
}

TEST_CASE("no text report has colour unless asked, and colour changes nothing else", "[contract][report]") {
    const Found found(kThree);
    for_each_text_report([&](const ReportInfo& report) {
        const std::string plain = report.render(found.set, {});
        CHECK(plain.find('\x1b') == std::string::npos);
        std::string colored = report.render(found.set, {true, 80});
        for (const std::string code : {"\x1b[1m", "\x1b[0m"})
            for (std::size_t at = 0; (at = colored.find(code)) != std::string::npos;) colored.erase(at, code.size());
        CHECK(colored == plain);
    });
}

TEST_CASE("the table keeps to 80 columns", "[contract][report]") {
    const Found found(kThree);
    for (const ReportInfo& report : reports())
        if (report.name == "table") CHECK(longest_line(below_head(report.render(found.set, {false, 80}))).size() <= 80);
}

TEST_CASE("a report of one run's history can be read as a trace again, and is what happened", "[contract][report]") {
    const Found found({"caching"}, "a 0 60M; a 1 5M 7; f 0; a 2 1", std::nullopt);
    for (const ReportInfo& report : reports()) {
        if (!report.needs.one_run) continue;
        INFO("report " << report.name);
        TempFolder folder;
        write_file(folder / "file", report.render(found.set, {}));
        const Recording again = read_recording(folder / "file");
        REQUIRE(again.traces.size() == 1);
        CHECK(again.diagnostics.empty());
        const Trace& before = found.recording.traces.front();
        const Trace& after = again.traces.front();
        CHECK(after.ops == before.ops);
        REQUIRE(after.buffers.size() == before.buffers.size());
        for (std::size_t i = 0; i < before.buffers.size(); ++i)
            CHECK(after.buffers[i].requested == before.buffers[i].requested);
        CHECK(verify(after, [](Device& device) { return policies().front().make({}, {device, {}, {}}); }).exact());
    }
}

TEST_CASE("every report renders the same bytes again", "[contract][report]") {
    const Found found(kThree);
    for_each_report(
        [&](const ReportInfo& report) { CHECK(report.render(found.set, {}) == report.render(found.set, {})); });
}

TEST_CASE("the JSON report is one document that keeps the contract", "[contract][report]") {
    const Found found(kThree);
    const auto json_report =
        std::find_if(reports().begin(), reports().end(), [](const ReportInfo& r) { return r.name == "json"; });
    REQUIRE(json_report != reports().end());
    const auto document = nlohmann::json::parse(json_report->render(found.set, {}));
    CHECK(document["schema"]["name"] == "fragsim.result");
    CHECK(document["tool"]["version"] == "1.2.3");
    CHECK(document["argv"][1] == "made \"by\" hand.txt");
    CHECK(document["trace"]["path"] == "made \"by\" hand.txt");
    REQUIRE(document["results"].size() == 3);
    const auto& result = document["results"][1];
    CHECK(result["policy"]["name"] == "split-capped");
    CHECK(result["policy"]["params"]["max_split_size_mb"] == 20);
    CHECK(result["device"]["capacity_bytes"] == 100 * kMiB);
    CHECK(result["metrics"]["num_ooms"] == 1);
    CHECK(result["metrics"]["reserved_bytes.all.peak"].is_number_integer());
    REQUIRE(result["ooms"].size() == 1);
    for (const char* key :
        {"op", "requested_bytes", "reserved_bytes", "allocated_bytes", "largest_free_bytes", "cause"})
        CHECK(result["ooms"][0].contains(key));
    CHECK(result["ooms"][0]["op"] == 1);
}
