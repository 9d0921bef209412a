// Reports that go into files, by the command line.
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/page.hpp"
#include "tests/support/program.hpp"

using namespace fragsim::test;

TEST_CASE("a page and trace events take several policies and several traces", "[cli][report]") {
    TempFolder folder;
    const Ended ended = fragsim::test::fragsim({"compare", sample("streams.default"), sample("mempool.default"),
        "--policy", "caching", "--policy", "expandable", "--report", "html=" + (folder / "page.html"), "--report",
        "perfetto=" + (folder / "events.json")});
    INFO(ended.err);
    REQUIRE(ended.status == 0);
    CHECK(ended.out.find("expandable") != std::string::npos);  // the table is still there
    const auto data = data_of_page(read_file(folder / "page.html"));
    REQUIRE(data["traces"].size() == 2);
    for (const auto& trace : data["traces"]) {
        CHECK(trace["policies"].size() == 2);
        for (const auto& policy : trace["policies"]) CHECK(policy["series"]["reserved"].size() == trace["ops"]);
    }
    int processes = 0;
    const auto events = nlohmann::json::parse(read_file(folder / "events.json"));
    for (const auto& event : events["traceEvents"]) processes += event["name"] == "process_name";
    CHECK(processes == 4);
}

TEST_CASE("files for viewers are not for the terminal, and a snapshot is of one run", "[cli][report]") {
    TempFolder folder;
    for (const std::string name : {"html", "perfetto", "torch-snapshot"}) {
        const Ended ended = fragsim::test::fragsim({"replay", sample("streams.default"), "--report", name});
        CHECK(ended.status == 2);
        CHECK(ended.out.empty());
        CHECK(ended.err.find("--report " + name + "=FILE") != std::string::npos);
    }
    const Ended two = fragsim::test::fragsim({"compare", sample("streams.default"), "--policy", "caching", "--policy",
        "expandable", "--report", "torch-snapshot=" + (folder / "two.pickle")});
    CHECK(two.status == 2);
    CHECK(folder.files().empty());
}

TEST_CASE("a page is the same bytes again", "[cli][report]") {
    TempFolder folder;
    for (const std::string name : {"a.html", "b.html"})
        REQUIRE(
            fragsim::test::fragsim({"replay", sample("oom.default"), "--report", "html=" + (folder / name)}).status ==
            0);
    CHECK(read_file(folder / "a.html") == read_file(folder / "b.html"));
}
