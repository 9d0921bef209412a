// Devices, latencies, prices and conversions on the command line.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

using namespace fragsim::test;
using nlohmann::json;

namespace {

const std::string kStreams = "traces/samples/streams.default.pickle.gz";
const std::string kUnet = "traces/samples/unet_multires.default.pickle.gz";
const std::string kProfile = "tests/gpu/results/h200/cost_profile.json";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Ended run(const std::vector<std::string>& arguments) { return fragsim::test::fragsim(arguments); }

std::string scratch(const std::string& name) {
    return (std::filesystem::temp_directory_path() / ("fragsim_device_test." + name)).string();
}

}  // namespace

TEST_CASE("without a driver a GPU is asked for in vain: status 4, and what to do", "[cli][device]") {
    const Ended ended = run({"replay", kStreams, "--policy", "caching", "--device", "cuda"});
    if (ended.status == 0) return;  // there is one
    CHECK(ended.status == 4);
    CHECK(ended.out == "");
    CHECK(ended.err.starts_with("fragsim: error: "));
    CHECK(contains(ended.err, "\nhint: "));
}

TEST_CASE("devices and what belongs to them are checked before any trace is read", "[cli][device]") {
    const std::vector<std::pair<std::vector<std::string>, std::string>> refused{
        {{"--device", "cuda:x"}, "unknown device 'cuda:x'"}, {{"--device", "gpu"}, "unknown device 'gpu'"},
        {{"--touch", "verify"}, "are for a GPU"}, {{"--pace", "recorded"}, "are for a GPU"},
        {{"--device", "cuda", "--ballast"}, "--ballast needs a capacity"},
        {{"--device", "cuda", "--pace", "fast"}, "'fast' is no pace"},
        {{"--device", "host", "--device", "host", "--timeline", "x.csv"}, "take one trace and one policy"}};
    for (const auto& [arguments, message] : refused) {
        std::vector<std::string> line{"replay", "no-such-file", "--policy", "caching"};
        line.insert(line.end(), arguments.begin(), arguments.end());
        const Ended ended = run(line);
        INFO(ended.err);
        CHECK(ended.status == 2);
        CHECK(contains(ended.err, message));
        CHECK(contains(ended.err, "\nhint: "));
    }
}

TEST_CASE("--repeat measures the policy's own time, which is no part of what two runs share", "[cli][device]") {
    const json latency = run_json(
        {"replay", kStreams, "--policy", "caching", "--repeat", "3", "--json"})["results"][0]["run"]["latency"];
    CHECK(latency["repetition_ns"].size() == 3);
    CHECK(latency["ops"]["alloc_hit"]["policy"]["count"] == 3 * 210);
    CHECK(latency["ops"]["alloc_growth"]["policy"]["count"] == 3 * 12);
    CHECK(latency["ops"]["alloc_hit"]["policy"]["p50_ns"] <= latency["ops"]["alloc_hit"]["policy"]["p99_ns"]);
    CHECK(contains(run({"replay", kStreams, "--policy", "caching", "--repeat", "2"}).out, "the policy's own time"));
}

TEST_CASE("a cost profile changes modelled time and nothing else", "[cli][device]") {
    json bundled = run_json({"replay", kStreams, "--policy", "caching", "--json"})["results"][0]["metrics"];
    json other = run_json(
        {"replay", kStreams, "--policy", "caching", "--cost-profile", kProfile, "--json"})["results"][0]["metrics"];
    CHECK(bundled["driver_time_ns"] != other["driver_time_ns"]);
    for (json* metrics : {&bundled, &other})
        for (const char* key : {"driver_time_ns", "driver_time_per_alloc_ns.p50", "driver_time_per_alloc_ns.p90",
                 "driver_time_per_alloc_ns.p99", "driver_time_per_alloc_ns.max"})
            metrics->erase(key);
    CHECK(bundled == other);
}

TEST_CASE("a cost profile that is none is status 3 with its name", "[cli][device]") {
    const std::string path = scratch("profile.json");
    for (const char* text : {"", "{}", "[1,2]", R"({"schema":{"name":"fragsim.cost_profile"},"curves":{}})"}) {
        std::ofstream(path) << text;
        const Ended ended = run({"replay", kStreams, "--policy", "caching", "--cost-profile", path});
        INFO(ended.err);
        CHECK(ended.status == 3);
        CHECK(contains(ended.err, path));
    }
    std::filesystem::remove(path);
    CHECK(run({"replay", kStreams, "--policy", "caching", "--cost-profile", path}).status == 3);
}

TEST_CASE("a converted trace replays as the one it was made from", "[cli][convert]") {
    const std::string path = scratch("trace.txt");
    REQUIRE(run({"convert", kUnet, "-o", path, "-f", "-q"}).status == 0);
    CHECK(run({"convert", kUnet}).out.starts_with("# fragsim trace 1\n"));
    for (const char* policy : {"caching", "buddy", "async-pool"}) {
        json was = run_json({"replay", kUnet, "--policy", policy, "--json"})["results"][0]["metrics"];
        const json now = run_json({"replay", path, "--policy", policy, "--json"})["results"][0]["metrics"];
        for (auto key = was.begin(); key != was.end();)  // the text form has no times
            key = contains(key.key(), "mean_by_time") ? was.erase(key) : std::next(key);
        CHECK(was == now);
    }
    std::filesystem::remove(path);
}

TEST_CASE("compare shows both ends of what nobody recorded, where they differ", "[cli][compare]") {
    const auto rows = [](const std::vector<std::string>& policies) {
        std::vector<std::string> line{"compare", kStreams, "--json"};
        for (const std::string& policy : policies) line.insert(line.end(), {"--policy", policy});
        std::vector<std::string> progress;
        const json document = run_json(line);
        for (const json& result : document["results"]) {
            const json& params = result["policy"]["params"];
            progress.push_back(params.contains("gpu_progress") ? params["gpu_progress"].get<std::string>() : "");
        }
        return progress;
    };
    CHECK(rows({"torch-async"}) == std::vector<std::string>{"idle", "never"});
    CHECK(rows({"torch-async:gpu_progress=never"}) == std::vector<std::string>{"never"});
    CHECK(rows({"caching", "torch-async"}) == std::vector<std::string>{"", "idle", "never"});
}

TEST_CASE("the settings of PyTorch's asynchronous backend pick its policy", "[cli][policy]") {
    const json results = run_json({"replay", kStreams, "--alloc-conf", "backend:cudaMallocAsync", "--json"})["results"];
    CHECK(results[0]["policy"]["name"] == "torch-async");
}
