// What explain and tune recommend, as the one who pastes it relies on it.
#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/page.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

namespace {

using namespace fragsim::test;
using nlohmann::json;

const std::string kUnet = "traces/samples/unet_multires.default.pickle.gz";
constexpr std::int64_t kMiB = 1 << 20;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string said(std::vector<std::string> words) {
    const Ended ended = fragsim::test::fragsim(words);
    INFO(ended.err);
    REQUIRE(ended.status == 0);
    return ended.out;
}

// As a CSV log, and as a snapshot with these settings (none: of a version without).
std::string holes_csv() {
    return "op,id,size\nalloc,w,104857600\nfree,w,0\nalloc,a,31457280\nalloc,b,41943040\nalloc,c,31457280\n"
           "free,a,0\nfree,c,0\nalloc,d,41943040\n";
}
std::string holes_snapshot(const json& settings) {
    json entries = json::array();
    std::int64_t time = 0;
    const auto add = [&](const char* action, std::int64_t at_mib, std::int64_t mib) {
        json entry{{"action", action}, {"addr", 0x7f0000000000 + at_mib * kMiB}, {"size", mib * kMiB}, {"stream", 0}};
        if (!settings.is_null()) entry["time_us"] = ++time;
        entries.push_back(std::move(entry));
    };
    const auto free = [&](std::int64_t at_mib, std::int64_t mib) {
        add("free_requested", at_mib, mib);
        add("free_completed", at_mib, mib);
    };
    add("segment_alloc", 0, 100);
    add("alloc", 0, 100);
    free(0, 100);
    add("alloc", 0, 30);
    add("alloc", 30, 40);
    add("alloc", 70, 30);
    free(0, 30);
    free(70, 30);
    add("segment_alloc", 1000, 40);
    add("alloc", 1000, 40);
    json document{{"segments", json::array()}, {"device_traces", json::array({entries})}};
    if (!settings.is_null()) document["allocator_settings"] = settings;
    return document.dump();
}

// Of one explanation or tuning: never a larger card, never a gain of less than 1 % that does not turn out of memory into
// fits, never a line that does nothing as it stands.
void check_promise(const json& recommended, const json& now, const json& best, bool by_card) {
    if (recommended.is_null()) return;
    INFO(recommended.dump() << " where " << now.dump() << " is in force");
    REQUIRE(best["min_capacity_bytes"].is_number());
    if (now["min_capacity_bytes"].is_number()) CHECK(best["min_capacity_bytes"] <= now["min_capacity_bytes"]);
    CHECK_FALSE(contains(recommended["line"], "garbage_collection_threshold"));
    const bool now_fits = now["num_ooms"] == 0, best_fits = best["num_ooms"] == 0;
    CHECK((best_fits || !now_fits));
    if (!now_fits && best_fits) return;
    const char* const figure = by_card ? "min_capacity_bytes" : "reserved_bytes.all.peak";
    if (now[figure].is_number()) CHECK(best[figure].get<double>() <= 0.99 * now[figure].get<double>());
}

}  // namespace

TEST_CASE("what explain recommends keeps its promise on every sample", "[cli][advice][explain]") {
    int recommended = 0;
    for (const char* name : {"detection.default", "gpt2_varlen.default", "gpt2_varlen.ring", "gpt2_varlen.split128",
             "graphs.default", "mempool.default", "oom.default", "streams.default", "streams.expandable",
             "twodev.default", "unet_multires.default", "vit_multires.f70"}) {
        json explained = run_json({"explain", sample(name)});
        std::int64_t least = 0;
        for (int round = 0; round < 3; ++round) {
            const json& now = explained["settings"][0];
            json best;
            for (const json& setting : explained["settings"])
                if (!explained["recommended"].is_null() && setting["label"] == explained["recommended"]["label"])
                    best = setting;
            INFO(name << ", round " << round);
            check_promise(explained["recommended"], now, best, !explained["capacity_bytes"].is_null());
            recommended += !explained["recommended"].is_null();
            if (round == 0) least = now["min_capacity_bytes"];
            // Where it just fits, and where it does not quite.
            const std::int64_t capacity = round == 0 ? least : least - 2 * kMiB;
            if (round < 2) explained = run_json({"explain", sample(name), "--capacity", std::to_string(capacity)});
        }
    }
    CHECK(recommended > 6);
}

TEST_CASE("what tune recommends keeps its promise, and the usual settings are beside it", "[cli][advice][tune]") {
    for (const std::vector<std::string>& limit :
        {std::vector<std::string>{}, {"--capacity", "1.75GiB"}, {"--memory-limit", "1.5GiB"}}) {
        std::vector<std::string> words{"tune", kUnet, "--price", "4"};
        words.insert(words.end(), limit.begin(), limit.end());
        const json tuned = run_json(words);
        INFO(tuned["best"].dump());
        if (limit.empty() || limit[0] == "--capacity")
            check_promise(tuned["recommended"], tuned["in_force"], tuned["best"], !limit.empty());
        CHECK(tuned["default"]["PYTORCH_CUDA_ALLOC_CONF"] == "");
        CHECK(tuned["expandable_segments"]["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True");
        CHECK(tuned["best_simple"]["entries"] <= 2);
        const std::string text = said(words);
        for (const char* key : {"best", "best_simple", "in_force", "default", "expandable_segments"}) {
            const json& setting = tuned[key];
            REQUIRE(setting.is_object());
            CHECK(setting["min_capacity_bytes"].is_number());
            const std::string conf = setting["PYTORCH_CUDA_ALLOC_CONF"];
            CHECK(contains(text, conf.empty() ? "\nPyTorch's default" : '\n' + conf));
        }
    }
}

TEST_CASE("no advice where nothing fits and nothing needs less", "[cli][advice][explain]") {
    TempFolder folder;
    const std::string trace = folder / "needs_more.trace";
    write_file(trace,
        "# fragsim trace 1\na 0 136314880\na 1 47185920\na 2 3145728\na 3 94371840\na 4 20971520\na 5 62914560\n"
        "a 6 7340032\na 7 7340032\n");
    const json explained = run_json({"explain", trace, "--capacity", "150MiB"});
    CHECK(explained["recommended"].is_null());
    const std::string text = said({"explain", trace, "--capacity", "150MiB"});
    CHECK(contains(text, "none does with less than 366 MiB"));
    CHECK_FALSE(contains(text, "export "));
    const json tuned = run_json({"tune", trace, "--capacity", "150MiB"});
    check_promise(tuned["recommended"], tuned["default"], tuned["best"], true);
}

TEST_CASE("a setting whose start does not fit is not ranked by what is left", "[cli][advice][shared]") {
    const auto file = shared_file("truth/workloads/realoom.default.pickle.gz");
    if (!file) return;
    const json explained = run_json({"explain", *file});
    CHECK(explained["recommended"].is_null());
    CHECK(explained["num_ooms"] == explained["settings"][0]["num_ooms"]);
    TempFolder folder;
    said({"explain", *file, "--report", "html=" + (folder / "page.html")});
    const json page = data_of_page(read_file(folder / "page.html"));
    CHECK(page["traces"][0]["policies"][0]["failures"] == explained["num_ooms"]);
    CHECK(contains(page["traces"][0]["verdict"][0], "out of memory 8 times"));
    const json tuned = run_json({"tune", *file, "--price", "100"});
    CHECK(tuned["recommended"].is_null());
    CHECK(tuned["best"]["PYTORCH_CUDA_ALLOC_CONF"] == "");
    CHECK(tuned["optimum"]["reserved_bytes.all.peak"] > 132 * 1024 * kMiB);
    const std::string text = said({"tune", *file, "--price", "100"});
    CHECK_FALSE(contains(text, "2033"));
    CHECK_FALSE(contains(text, "export "));
}

TEST_CASE("other allocators are spoken to in their own words", "[cli][advice][explain]") {
    TempFolder folder;
    const std::string trace = folder / "log.csv";
    write_file(trace, holes_csv());
    for (const char* policy : {"bfc", "bfc:allow_growth=false", "rmm-pool", "rmm-arena", "rmm-binning", "direct", "tlsf",
             "best-fit", "async-pool", "buddy", "stitching", "vmm-pool", "planner"})
        for (const char* capacity : {"none", "100MiB", "400MiB"}) {
            const std::vector<std::string> words{"explain", trace, "--policy", policy, "--capacity", capacity};
            INFO(policy << " at " << capacity);
            const std::string text = said(words);
            CHECK_FALSE(contains(text, "PYTORCH_"));
            CHECK_FALSE(contains(text, "PyTorch's default"));
            CHECK_FALSE(contains(text, "If this is PyTorch's program"));
            for (const json& setting : run_json(words)["settings"]) CHECK(setting["PYTORCH_CUDA_ALLOC_CONF"].is_null());
        }
    const std::string jax = said({"explain", trace, "--policy", "bfc", "--capacity", "120MiB"});
    CHECK(contains(jax, "the driver's pool"));
    CHECK(contains(jax, "XLA_CLIENT_MEM_FRACTION"));
    CHECK(contains(said({"explain", trace, "--policy", "tlsf"}), "No setting that users of tlsf have is known here"));
}

TEST_CASE("a JAX program with a hole in its region is given JAX's variables", "[cli][advice][shared]") {
    const auto file = shared_file("cases/marin7115.csv");
    if (!file) return;
    const json advice = run_json({"explain", *file, "--policy", "bfc"})["recommended"];
    REQUIRE(advice.is_object());
    CHECK(advice["lines"][0]["program"] == "JAX");
    CHECK(advice["lines"][0]["line"] == "export XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async");
    CHECK(advice["lines"][1]["line"] == "export TF_GPU_ALLOCATOR=cuda_malloc_async");
    const std::string rmm = said({"explain", *file, "--policy", "rmm-pool", "--capacity", "70GiB"});
    CHECK(contains(rmm, "rmm.mr.set_current_device_resource("));
}

TEST_CASE("a trace that does not say whose it is gets an if", "[cli][advice][explain][tune]") {
    TempFolder folder;
    write_file(folder / "log.csv", holes_csv());
    const std::string log = folder / "log.csv", snapshot = folder / "snapshot.json";
    write_file(snapshot, holes_snapshot({{"PYTORCH_CUDA_ALLOC_CONF", ""}}));
    const char* const suppose = "If this is PyTorch's program, ";
    CHECK(contains(said({"explain", log, "--capacity", "100MiB"}), suppose));
    CHECK(contains(said({"tune", log, "--capacity", "100MiB"}), suppose));
    CHECK(run_json({"explain", log, "--capacity", "100MiB"})["program_assumed"] == true);
    // Who names PyTorch's allocator, or has its snapshot, does not.
    CHECK_FALSE(contains(said({"explain", log, "--capacity", "100MiB", "--policy", "caching"}), suppose));
    CHECK_FALSE(contains(said({"explain", log, "--capacity", "100MiB", "--alloc-conf", ""}), suppose));
    CHECK_FALSE(contains(said({"explain", snapshot, "--capacity", "100MiB"}), suppose));
    CHECK_FALSE(contains(said({"tune", snapshot, "--capacity", "100MiB"}), suppose));
}

TEST_CASE("the line is spelled for the PyTorch that recorded", "[cli][advice][explain][tune]") {
    TempFolder folder;
    const auto line = [&](const json& settings, const std::vector<std::string>& more = {}) {
        const std::string snapshot = folder / "snapshot.json";
        write_file(snapshot, holes_snapshot(settings));
        std::vector<std::string> words{"explain", snapshot, "--capacity", "100MiB"};
        words.insert(words.end(), more.begin(), more.end());
        const std::string explained = run_json(words)["recommended"]["line"];
        if (more.empty()) CHECK(run_json({"tune", snapshot, "--capacity", "100MiB"})["recommended"]["line"] == explained);
        return explained;
    };
    const json old{{"PYTORCH_CUDA_ALLOC_CONF", ""}}, newer{{"graph_capture_record_stream_reuse", false}},
        hip{{"release_lock_on_hipmalloc", false}, {"graph_capture_record_stream_reuse", false}};
    CHECK(line(nullptr) == "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    CHECK(line(old) == "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    CHECK(line(newer) == "export PYTORCH_ALLOC_CONF=expandable_segments:True");
    CHECK(line(hip) == "export PYTORCH_HIP_ALLOC_CONF=expandable_segments:True");
    // The version that is asked for is whose rules hold.
    CHECK(line(newer, {"--policy", "caching:torch_version=2.8"}) ==
          "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    // Back to the default: every name is unset that may hold what is in force.
    const std::string back = line({{"graph_capture_record_stream_reuse", false},
                                      {"PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:2"}},
        {});
    CHECK(contains(back, "PYTORCH_ALLOC_CONF"));
}

TEST_CASE("failures are counted once, whoever says them", "[cli][advice][explain]") {
    for (const std::vector<std::string>& words :
        {std::vector<std::string>{"vit_multires.f70"}, {"oom.default"}, {"unet_multires.default", "--capacity", "1.3GiB"}}) {
        std::vector<std::string> explain{"explain", sample(words[0])}, replay{"replay", sample(words[0])};
        explain.insert(explain.end(), words.begin() + 1, words.end());
        const json explained = run_json(explain);
        const json &now = explained["settings"][0], &bound = explained["memory_limit_bytes"];
        replay.insert(replay.end(), {bound.is_null() ? "--capacity" : "--memory-limit",
                                        std::to_string((bound.is_null() ? explained["capacity_bytes"] : bound)
                                                           .get<std::int64_t>())});
        CHECK(now["num_ooms"] > 0);
        CHECK(explained["num_ooms"] == now["num_ooms"]);
        CHECK(run_json(replay)["results"][0]["num_failures"] == now["num_ooms"]);
        const json tuned_at = run_json({"tune", sample(words[0]), replay[2], replay[3], "--price", "1"});
        CHECK(tuned_at["in_force"]["num_ooms"] == now["num_ooms"]);
    }
}

TEST_CASE("garbage collection on a card is an extra, with the line that sets a memory fraction", "[cli][advice][explain]") {
    // Where expandable segments are out of reach, collecting is what carries the run.
    const json explained = run_json({"explain", sample("vit_multires.f70"), "--capacity", "9.79GiB"});
    CHECK_FALSE(contains(explained["recommended"]["line"], "garbage"));
    for (const json& setting : explained["settings"])
        CHECK_FALSE((contains(setting["label"], "garbage") && explained["extra"].is_null()));
    if (explained["extra"].is_object())
        CHECK(contains(explained["extra"]["program_line"], "torch.cuda.set_per_process_memory_fraction("));
}
