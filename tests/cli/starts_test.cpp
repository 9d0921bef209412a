// Recordings that start in mid-run: who is given what the recorded allocator had cached, and which device is looked at.
#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

using namespace fragsim::test;
using nlohmann::json;

namespace {

constexpr std::int64_t kMi = 1 << 20, kBase = 0x7f0000000000;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

json block(std::int64_t address, std::int64_t mib, bool live) {
    return {{"address", address}, {"size", mib * kMi}, {"requested_size", mib * kMi},
        {"state", live ? "active_allocated" : "inactive"}, {"frames", json::array()}};
}

json segment(std::int64_t address, std::int64_t mib, json blocks, bool expandable = false, int device = 0) {
    return {{"device", device}, {"address", address}, {"total_size", mib * kMi}, {"stream", 0},
        {"segment_type", mib == 2 ? "small" : "large"}, {"segment_pool_id", {0, 0}}, {"is_expandable", expandable},
        {"frames", json::array()}, {"blocks", std::move(blocks)}};
}

json entry(const char* action, std::int64_t address, std::int64_t mib) {
    return {{"action", action}, {"addr", address}, {"size", mib * kMi}, {"stream", 0}, {"frames", json::array()}};
}

// Allocated and freed again.
void use(json& history, std::int64_t address, std::int64_t mib) {
    for (const char* action : {"alloc", "free_requested", "free_completed"})
        history.push_back(entry(action, address, mib));
}

json snapshot(json segments, json histories, const std::string& conf = "") {
    return {{"segments", std::move(segments)}, {"device_traces", std::move(histories)},
        {"allocator_settings",
            {{"PYTORCH_CUDA_ALLOC_CONF", conf}, {"expandable_segments", contains(conf, "expandable_segments:True")}}}};
}

// 100 MiB are live, and 900 MiB cached behind them in one expandable segment. 500 MiB are used now and then.
json expandable_with_cache() {
    json history = json::array();
    for (int i = 0; i < 2; ++i) use(history, kBase + 100 * kMi, 500);
    return snapshot(json::array({segment(kBase, 1000,
                        json::array({block(kBase, 100, true), block(kBase + 100 * kMi, 900, false)}), true)}),
        json::array({history}), "expandable_segments:True");
}

// 100 MiB are live, and 400 and 300 MiB are cached in segments of their own, used in turn.
json native_with_cache() {
    json history = json::array();
    use(history, kBase, 400);
    use(history, kBase + 1024 * kMi, 300);
    use(history, kBase, 400);
    return snapshot(json::array({segment(kBase, 400, json::array({block(kBase, 400, false)})),
                        segment(kBase + 1024 * kMi, 300, json::array({block(kBase + 1024 * kMi, 300, false)})),
                        segment(kBase + 2048 * kMi, 100, json::array({block(kBase + 2048 * kMi, 100, true)}))}),
        json::array({history}));
}

std::string stored(const TempFolder& folder, const json& document) {
    write_file(folder / "run.json", document.dump());
    return folder / "run.json";
}

std::int64_t reserved_mib(const json& result) {
    return result["metrics"]["reserved_bytes.all.peak"].get<std::int64_t>() / kMi;
}

}  // namespace

TEST_CASE("policies that are compared all start from what was live", "[cli][compare][start]") {
    TempFolder folder;
    for (const json& recording : {expandable_with_cache(), native_with_cache()}) {
        const std::string file = stored(folder, recording);
        const json explained = run_json({"explain", file});
        const json results = run_json({"compare", file, "--policy", "caching", "--policy", "expandable"})["results"];
        for (const json& result : results) CHECK(result["start"] == "live");
        for (const json& setting : explained["settings"]) {
            const std::int64_t reserved = setting["reserved_bytes.all.peak"].get<std::int64_t>() / kMi;
            if (setting["label"] == "PyTorch's default") CHECK(reserved == reserved_mib(results[0]));
            if (setting["label"] == "expandable_segments:True") CHECK(reserved == reserved_mib(results[1]));
        }
        const std::string text =
            fragsim::test::fragsim({"compare", file, "--policy", "caching", "--policy", "bfc"}).out;
        CHECK(contains(text, "starts in mid-run: from what was live then"));
    }
    const json native = run_json({"compare", stored(folder, native_with_cache()), "--policy", "caching", "--policy",
        "expandable", "--policy", "async-pool"})["results"];
    // 100 MiB live and one segment of 400 MiB, which serves the 300 MiB, too.
    CHECK(reserved_mib(native[0]) == 500);
    CHECK(reserved_mib(native[1]) == 500);
}

TEST_CASE("the policy in force alone takes over the recorded start, another one does not", "[cli][replay][start]") {
    TempFolder folder;
    const std::string file = stored(folder, expandable_with_cache());
    const auto start = [&](std::vector<std::string> options) {
        options.insert(options.begin(), {"replay", file});
        return run_json(options)["results"][0];
    };
    CHECK(start({})["start"] == "recorded");
    CHECK(reserved_mib(start({})) == 1000);
    CHECK(start({"--policy", "expandable"})["start"] == "recorded");
    CHECK(start({"--alloc-conf", "expandable_segments:True"})["start"] == "recorded");
    CHECK(start({"--policy", "caching"})["start"] == "live");
    CHECK(reserved_mib(start({"--policy", "caching"})) == 600);
    CHECK(start({"--alloc-conf", "expandable_segments:True,max_split_size_mb:64"})["start"] == "live");
    CHECK(contains(fragsim::test::fragsim({"replay", file}).out, "with the memory that the recording begins with"));
    CHECK(contains(fragsim::test::fragsim({"tune", file}).out, "starts in mid-run: from what was live"));
    CHECK(contains(fragsim::test::fragsim({"explain", file}).out, "starts in mid-run: from what was live"));
    CHECK(contains(fragsim::test::fragsim({"verify", file}).out, "exact"));
    const Ended swept = fragsim::test::fragsim({"sweep", file, "--axis", "capacity=[2GiB,none]"});
    CHECK(contains(swept.out, "\"start\":\"live\""));
    CHECK_FALSE(contains(swept.out, "\"start\":\"recorded\""));
}

TEST_CASE("the least that is needed does not depend on the capacity", "[cli][compare]") {
    TempFolder folder;
    write_file(folder / "log.csv", "op,id,size,stream\nalloc,a,41943040,0\nalloc,b,41943040,0\nfree,a,,\nfree,b,,\n");
    for (const char* capacity : {"50MiB", "1GiB"})
        CHECK(contains(fragsim::test::fragsim({"compare", folder / "log.csv", "--capacity", capacity}).out,
            "at least 80.0 MiB are needed"));
}

TEST_CASE("the device that ran out of memory is explained, and the other is named", "[cli][explain]") {
    json busy = json::array(), failed = json::array();
    for (int i = 0; i < 4; ++i) use(busy, kBase, 1);
    busy.insert(busy.begin(), entry("segment_alloc", kBase, 2));
    failed.push_back(entry("segment_alloc", kBase + 4096 * kMi, 100));
    failed.push_back(entry("alloc", kBase + 4096 * kMi, 100));
    failed.push_back({{"action", "oom"}, {"device_free", 10 * kMi}, {"size", 200 * kMi}, {"stream", 0}});
    TempFolder folder;
    const std::string file = stored(folder,
        snapshot(json::array({segment(kBase, 2, json::array({block(kBase, 2, false)})),
                     segment(kBase + 4096 * kMi, 100, json::array({block(kBase + 4096 * kMi, 100, true)}), false, 1)}),
            json::array({busy, failed})));
    const std::string out = fragsim::test::fragsim({"explain", file}).out;
    INFO(out);
    CHECK(contains(out, "device 1: "));
    CHECK(contains(out, "200 MiB asked for"));
    CHECK(contains(out, "Device 0 did not run out of memory: --gpu 0 explains it."));
    const std::string chosen = fragsim::test::fragsim({"explain", file, "--gpu", "0"}).out;
    CHECK(contains(chosen, "device 0: "));
    CHECK(contains(chosen, "Device 1 ran out of memory, too: --gpu 1 explains it."));
    CHECK(run_json({"explain", file})["other_devices"][0]["num_ooms"] == 0);
}

TEST_CASE("a retry in the recording bounds what its process had", "[cli][explain]") {
    json history = json::array({entry("segment_alloc", kBase, 600)});
    use(history, kBase, 600);
    json released = entry("segment_free", kBase, 600);  // whose call stack names the malloc: no empty_cache
    released["frames"] = json::array({{{"filename", "??"}, {"line", 0},
        {"name", "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long)"}}});
    history.push_back(released);
    history.push_back(entry("segment_alloc", kBase + 1024 * kMi, 700));
    history.push_back(entry("alloc", kBase + 1024 * kMi, 700));
    TempFolder folder;
    const std::string file = stored(folder,
        snapshot(json::array({segment(kBase + 1024 * kMi, 700, json::array({block(kBase + 1024 * kMi, 700, true)}))}),
            json::array({history})));
    const json explained = run_json({"explain", file});
    CHECK(explained["limits_source"] == "recorded_retry");
    CHECK(explained["capacity_bytes"] == 700 * kMi);
    CHECK(explained["capacity_below_bytes"] == 1300 * kMi);
    CHECK(explained["moments"][0]["reserved_bytes"] == 700 * kMi);
    const std::string out = fragsim::test::fragsim({"explain", file}).out;
    INFO(out);
    CHECK(contains(out, "refused 700.0 MiB with 600.0 MiB reserved"));
    CHECK(contains(out, "less than 1,300.0 MiB"));
    CHECK(json::parse(fragsim::test::fragsim({"explain", file, "--capacity", "4GiB", "--json"}).out)["limits_source"] ==
          "given");
}

TEST_CASE("a history without any allocation is explained, by every report", "[cli][explain]") {
    TempFolder folder;
    const json segments =
        json::array({segment(kBase, 32, json::array({block(kBase, 30, true), block(kBase + 30 * kMi, 2, false)}))});
    for (const json& only : {entry("snapshot", 0, 30), entry("segment_free", kBase + 64 * kMi, 20)}) {
        const std::string file = stored(folder, snapshot(segments, json::array({json::array({only})})));
        for (const char* capacity : {"10MiB", "1GiB"}) {
            const Ended ended = fragsim::test::fragsim({"explain", file, "--capacity", capacity, "--report",
                "html=" + (folder / "page.html"), "--report", "perfetto=" + (folder / "trace.json"), "--force"});
            INFO(ended.err << ended.out);
            CHECK(ended.status == 0);
        }
        for (const char* command : {"replay", "compare", "tune", "inspect"})
            CHECK(fragsim::test::fragsim({command, file}).status == 0);
    }
}
