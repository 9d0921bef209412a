// The card's capacity and the memory limit through the real program: every command that replays knows both, and what was
// stored before they were told apart keeps its meaning.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/answers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

namespace {

using namespace fragsim::test;
using nlohmann::json;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
const std::string kOom = "traces/samples/oom.default.pickle.gz";
const std::string kUnet = "traces/samples/unet_multires.default.pickle.gz";
const char* const kGarbage = "garbage_collection_threshold:0.6";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Ended in_folder(const TempFolder& folder, const std::vector<std::string>& words) {
    return fragsim::test::fragsim(words, {folder.path(), "/dev/null", {}, false, ""});
}

json metrics(std::vector<std::string> words) {
    words.insert(words.begin(), {"replay", kUnet, "--json"});
    return run_json(words)["results"][0]["metrics"];
}

}  // namespace

TEST_CASE("garbage collection acts within a memory limit and does nothing on a full card", "[cli][limits]") {
    const json plain = metrics({"--capacity", "1.9GiB", "--alloc-conf", ""});
    CHECK(metrics({"--capacity", "1.9GiB", "--alloc-conf", kGarbage}) == plain);
    CHECK(metrics({"--memory-limit", "1.9GiB", "--alloc-conf", kGarbage})["num_device_free"] > plain["num_device_free"]);
    const Ended ended =
        fragsim::test::fragsim({"replay", kUnet, "--capacity", "1.9GiB", "--alloc-conf", kGarbage, "--report", "detail"});
    CHECK(contains(ended.out + ended.err, "--memory-limit"));
}

TEST_CASE("a share of the capacity is the memory limit that PyTorch would have", "[cli][limits]") {
    const json shared = run_json({"replay", kOom, "--json", "--capacity", "10GiB", "--memory-limit", "55%"});
    const json& device = shared["results"][0]["device"];
    CHECK(device["capacity_bytes"] == 10 * kGiB);
    CHECK(device["memory_limit_bytes"] == 10 * kGiB * 55 / 100);
    const json sized = run_json({"replay", kOom, "--json", "--memory-limit", "5.5GiB"});
    CHECK(shared["results"][0]["metrics"]["num_ooms"] == sized["results"][0]["metrics"]["num_ooms"]);
    check_usage({"replay", kOom, "--memory-limit", "55%"}, "share of an unknown capacity");
    check_usage({"replay", kOom, "--capacity", "10GiB", "--memory-limit", "155%"}, "'155%' is not a share");
    check_usage({"explain", kOom, "--memory-limit", "plenty"}, "'plenty' is not a size");
}

TEST_CASE("cudaMallocAsync keeps to a memory limit by the bytes in use, to the card by those reserved", "[cli][limits]") {
    const auto peak = [](const char* option, const char* size) {
        return run_json({"replay", kUnet, "--alloc-conf", "backend:cudaMallocAsync", option, size,
            "--json"})["results"][0]["metrics"]["reserved_bytes.all.peak"]
            .get<std::int64_t>();
    };
    CHECK(peak("--memory-limit", "1.7GiB") > 17 * kGiB / 10);
    CHECK(peak("--capacity", "1.7GiB") <= 17 * kGiB / 10);
}

TEST_CASE("every command that replays takes a memory limit and says so", "[cli][limits]") {
    for (const char* command : {"replay", "compare"}) {
        const Ended ended = fragsim::test::fragsim({command, kOom, "--memory-limit", "5.5GiB"});
        CHECK(contains(ended.out, "memory limit 5.50 GiB"));
    }
    CHECK(run_json({"explain", kOom, "--memory-limit", "5.5GiB"})["memory_limit_bytes"] == 11 * kGiB / 2);
    CHECK(contains(fragsim::test::fragsim({"explain", kOom, "--memory-limit", "5.5GiB"}).out, "memory limit 5.50 GiB"));
    const json tuned = run_json({"tune", kUnet, "--capacity", "4GiB", "--memory-limit", "50%", "--price", "1"});
    CHECK(tuned["traces"][0]["capacity_bytes"] == 4 * kGiB);
    CHECK(tuned["traces"][0]["memory_limit_bytes"] == 2 * kGiB);
    CHECK(fragsim::test::fragsim({"verify", kOom, "--memory-limit", "6.9GiB"}).status == 0);
}

TEST_CASE("within a memory limit explain speaks of limits, not of cards", "[cli][limits]") {
    const std::string limited = fragsim::test::fragsim({"explain", kOom, "--memory-limit", "5.5GiB"}).out;
    CHECK(contains(limited, "smallest limit"));
    CHECK(contains(limited, "within this memory limit"));
    CHECK_FALSE(contains(limited, "card,"));
    CHECK(contains(fragsim::test::fragsim({"explain", kOom, "--capacity", "5.5GiB"}).out, "smallest card"));
    const json explained = run_json({"explain", kOom, "--memory-limit", "5.5GiB"});
    CHECK(explained["settings"][0]["min_capacity"]["is"] == "memory_limit");
}

TEST_CASE("a sweep has an axis of memory limits, whose shares are of each capacity", "[cli][limits]") {
    const Ended ended = fragsim::test::fragsim(
        {"sweep", kOom, "--axis", "capacity=[6GiB,8GiB]", "--axis", "memory_limit=[50%,none]"});
    REQUIRE(ended.status == 0);
    std::istringstream lines(ended.out);
    std::vector<std::pair<json, json>> limits;
    for (std::string line; std::getline(lines, line);) {
        const json device = json::parse(line)["device"];
        limits.emplace_back(device["capacity_bytes"], device["memory_limit_bytes"]);
    }
    CHECK(limits == std::vector<std::pair<json, json>>{
                        {6 * kGiB, 3 * kGiB}, {6 * kGiB, nullptr}, {8 * kGiB, 4 * kGiB}, {8 * kGiB, nullptr}});
    check_usage({"sweep", kOom, "--axis", "memory_limit=[50%]"}, "share of an unknown capacity");
    check_usage({"sweep", kOom, "--axis", "memory_limits=[50%]"}, "names no policy");
    check_usage({"sweep", kOom, "--axis", "memory_limit=[1GiB]", "--memory-limit", "1GiB"}, "--memory-limit beside");
}

TEST_CASE("a baseline of version 1 stays green: its capacities were memory limits of PyTorch's policies", "[cli][limits]") {
    const TempFolder folder;
    const Ended written = in_folder(folder, {"check", "--baseline", "new.json", "--update", sample("oom.default"),
        "--policy", "caching", "--policy", "best-fit", "--memory-limit", "5.5GiB", "--memory-limit", "none"});
    INFO(written.err);
    REQUIRE(written.status == 0);
    json baseline = json::parse(read_file(folder / "new.json"));
    CHECK(baseline["schema"]["version"] == "2.0.0");
    CHECK(baseline["entries"][0]["memory_limit"] == "5.5GiB");
    CHECK(in_folder(folder, {"check", "--baseline", "new.json"}).status == 0);

    baseline["schema"]["version"] = "1.0.0";
    for (json& entry : baseline["entries"]) {
        entry["capacity"] = entry["memory_limit"];  // the device refused the others at it, then as now
        entry.erase("memory_limit");
    }
    write_file(folder / "old.json", baseline.dump());
    const Ended checked = in_folder(folder, {"check", "--baseline", "old.json"});
    INFO(checked.out << checked.err);
    CHECK(checked.status == 0);
    // Written anew, it says what it means.
    REQUIRE(in_folder(folder, {"check", "--baseline", "old.json", "--update"}).status == 0);
    const json updated = json::parse(read_file(folder / "old.json"));
    CHECK(updated["entries"][0]["capacity"].is_null());
    CHECK(updated["entries"][0]["memory_limit"] == "5.5GiB");
}

TEST_CASE("stored results of version 1 are compared with what they meant", "[cli][limits]") {
    const TempFolder folder;
    REQUIRE(in_folder(folder, {"replay", sample("oom.default"), "--policy", "caching", "--memory-limit", "5.5GiB",
                                  "--report", "json=new.json"})
                .status == 0);
    json result = json::parse(read_file(folder / "new.json"));
    result["schema"]["version"] = "1.0.0";
    json& device = result["results"][0]["device"];
    device["capacity_bytes"] = device["memory_limit_bytes"];
    device.erase("memory_limit_bytes");
    write_file(folder / "old.json", result.dump());
    const Ended compared = in_folder(folder, {"compare", "old.json", "new.json", "--fail-on-regression"});
    INFO(compared.out << compared.err);
    CHECK(compared.status == 0);
    CHECK(contains(compared.out, "all as in the baseline"));
}
