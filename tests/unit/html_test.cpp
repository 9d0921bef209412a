// The HTML report as a file; tests/reports/page_test.py looks at it in a browser.
#include <regex>

#include "lib/report/report.hpp"
#include "lib/study/memory_map.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/page.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

const ReportInfo& html() {
    return *std::find_if(reports().begin(), reports().end(), [](const ReportInfo& r) { return r.name == "html"; });
}

struct Shown {
    explicit Shown(Trace played, const char* path = "made by hand") {
        recording.path = path;
        recording.format = "test";
        recording.traces.push_back(std::move(played));
        RunOptions options;
        options.limits.capacity = 100 * kMiB;
        options.record_history = options.record_series = true;
        TraceResults on_trace{&recording, &recording.traces.front(), {}};
        for (const char* policy : {"caching", "expandable"})
            on_trace.results.push_back(
                run_policy(recording.traces.front(), parse_policy_spec(policy, policies()), options));
        set.tool_version = "1.2.3";
        set.traces.push_back(std::move(on_trace));
        page = html().render(set, {});
    }
    Shown(const Shown&) = delete;

    const Result& result(std::size_t i) const { return set.traces.front().results[i]; }

    Recording recording;
    ResultSet set;
    std::string page;
};

constexpr const char* kCalls = "a 0 60M; a 1 5M-1; f 0; a 2 120M; a 3 30M; f 1; f 3";

}  // namespace

TEST_CASE("a page loads nothing", "[unit][html]") {
    const Shown shown(script(kCalls));
    const std::regex loads(
        R"((src|href)\s*=\s*["']?\s*(https?:)?//|url\(\s*["']?(https?:)?//|@import|sourceMappingURL)");
    std::smatch found;
    const bool any = std::regex_search(shown.page, found, loads);
    INFO(found.str());
    CHECK_FALSE(any);
    CHECK(shown.page.find("Content-Security-Policy") != std::string::npos);
    CHECK_FALSE(std::regex_search(shown.page, std::regex(R"(\{\{[a-z_]+\}\})")));
    CHECK(shown.page.find("Dygraph") != std::string::npos);
    CHECK(shown.page.find("dygraphs/blob/v2") != std::string::npos);  // the library's own licence line
}

TEST_CASE("a page's data are the results' figures", "[unit][html]") {
    const Shown shown(script(kCalls));
    const auto data = data_of_page(shown.page);
    CHECK(data["version"] == "1.2.3");
    const auto& trace = data["traces"][0];
    CHECK(trace["bound"] == 100 * kMiB);
    CHECK(trace["verdict"].size() == 2);
    CHECK(trace["table"]["rows"].size() == 2);
    CHECK_FALSE(trace.contains("time_us"));
    for (std::size_t i = 0; i < 2; ++i) {
        const auto& policy = trace["policies"][i];
        const Series& series = shown.result(i).series;
        CHECK(summed(policy["series"]["requested"]) == series.requested);
        CHECK(summed(policy["series"]["allocated"]) == series.allocated);
        CHECK(summed(policy["series"]["active"]) == series.active);
        CHECK(summed(policy["series"]["reserved"]) == series.reserved);
        CHECK(summed(policy["series"]["largest_free"]) == series.largest_free);
        REQUIRE(policy["ooms"].size() == 1);
        CHECK(policy["ooms"][0]["op"] == 3);
    }
}

TEST_CASE("a page has a memory map around the peak and around the first out of memory", "[unit][html]") {
    const Shown shown(script(kCalls));
    const auto maps = data_of_page(shown.page)["traces"][0]["policies"][0]["maps"];
    REQUIRE(maps.size() == 2);
    CHECK(maps[0]["op"] == peak_op(shown.result(0).series));
    CHECK(maps[1]["op"] == 3);
    const MemoryMap map = memory_map(*shown.set.traces[0].trace, shown.result(0), 0, 7);
    const auto& blocks = maps[1]["blocks"];
    const auto addresses = summed(blocks["address"]), begins = summed(blocks["begin"]);
    REQUIRE(addresses.size() == map.blocks.size());
    for (std::size_t i = 0; i < map.blocks.size(); ++i) {
        CHECK(static_cast<Address>(addresses[i]) == map.blocks[i].address);
        CHECK(blocks["bytes"][i] == map.blocks[i].bytes);
        CHECK(begins[i] == map.blocks[i].begin);
        CHECK(blocks["requested"][i] == shown.recording.traces[0].buffers[map.blocks[i].buffer.value].requested);
    }
}

TEST_CASE("whatever a trace is called, its name is in the data only", "[unit][html]") {
    const std::string hostile = "a</script><script>alert(\"'&\")</script>\xff{{script}}.pickle";
    Trace trace = script(kCalls);
    trace.frames = {{hostile, "net.py", 3}};
    trace.stack_frames = {0};
    trace.stack_begin = {0, 1};
    for (Buffer& buffer : trace.buffers) buffer.stack = {0};
    const Shown shown(std::move(trace), hostile.c_str());
    CHECK(shown.page.find("alert(") == std::string::npos);
    const auto data = data_of_page(shown.page);
    const std::string valid = "a</script><script>alert(\"'&\")</script>\xef\xbf\xbd{{script}}.pickle";
    CHECK(data["traces"][0]["path"] == valid);
    CHECK(data["traces"][0]["sites"][0] == "net.py:3 " + valid);
}

TEST_CASE("times of a page are the ops', not the events'", "[unit][html]") {
    Trace trace = script("a 0 1M; m between; f 0");
    trace.time_us = {1000, 1500, 4000};
    const Shown shown(std::move(trace));
    CHECK(summed(data_of_page(shown.page)["traces"][0]["time_us"]) == std::vector<Bytes>{1000, 4000});
}
