// explain and tune as users and scripts meet them.
#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

using namespace fragsim::test;
using nlohmann::json;

namespace {

const std::string kVit = "traces/samples/vit_multires.f70.pickle.gz";
const std::string kUnet = "traces/samples/unet_multires.default.pickle.gz";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the README begins with a command and what it really prints", "[cli][explain]") {
    const std::string readme = read_file(source_dir() + "/README.md");
    const std::size_t begin = readme.find("```\n$ ") + 6, end = readme.find("\n```", begin);
    const std::string block = readme.substr(begin, end - begin);
    const std::string command = block.substr(0, block.find('\n'));
    CHECK(command.starts_with("fragsim explain "));
    CHECK(contains(command, "9.79GiB"));
    const Ended ended = shell(command);
    REQUIRE(ended.status == 0);
    CHECK(block.substr(command.size() + 1) + "\n" == ended.out);
}

TEST_CASE("explain gives the verdict, its figures and a line to paste", "[cli][explain]") {
    const json explained = run_json({"explain", kVit, "--capacity", "9.79GiB"});
    CHECK(explained["schema"]["name"] == "fragsim.explanation");
    CHECK(explained["limits_source"] == "given");
    const json& moment = explained["moments"][0];
    CHECK(moment["kind"] == "recorded_oom");
    CHECK(moment["verdict"] == "fragmentation");
    CHECK(moment["largest_free_bytes"] < moment["requested_bytes"]);
    CHECK(moment["free_bytes"] > moment["requested_bytes"]);
    CHECK(explained["settings"][0]["in_force"] == true);
    CHECK(explained["settings"][0]["survives"] == false);
    CHECK(explained["recommended"]["line"] == "export PYTORCH_ALLOC_CONF=expandable_segments:True");

    // What it recommends works, at the capacity and at the smallest card it names; on a smaller one it does not.
    for (const json& setting : explained["settings"]) {
        if (setting["label"] != explained["recommended"]["label"]) continue;
        const auto replay_at = [&](std::int64_t bytes) {
            return run_json({"replay", kVit, "--alloc-conf", setting["PYTORCH_CUDA_ALLOC_CONF"], "--capacity",
                std::to_string(bytes)})["results"][0]["survives"]
                .get<bool>();
        };
        const std::int64_t least = setting["min_capacity_bytes"];
        CHECK(replay_at(least));
        CHECK_FALSE(replay_at(least - (2 << 20)));
    }
}

TEST_CASE("explain reads the limit off a recording that ran into it", "[cli][explain]") {
    const json explained = run_json({"explain", kVit});
    CHECK(explained["limits_source"] == "recorded_limit");
    CHECK(explained["capacity_bytes"].is_null());
    CHECK(explained["memory_limit_bytes"] > 10'480'000'000);  // the run had 9.79 GiB
    CHECK(explained["memory_limit_bytes"] < 10'520'000'000);
    CHECK(explained["moments"][0]["verdict"] == "fragmentation");
}

TEST_CASE("explain takes a pasted message, too", "[cli][explain]") {
    TempFolder folder;
    write_file(folder / "error.txt",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.50 "
        "GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 22.49 GiB memory in use. Of the "
        "allocated memory 16.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated.");
    const Ended ended = fragsim::test::fragsim({"explain", "--message", folder / "error.txt"});
    CHECK(ended.status == 0);
    CHECK(contains(ended.out, "ragmentation"));
    Surroundings pipe;
    pipe.input = folder / "error.txt";
    CHECK(fragsim::test::fragsim({"explain", "--message", "-"}, pipe).out == ended.out);
    CHECK(run_json({"explain", "--message", folder / "error.txt"}).contains("schema"));
    CHECK(fragsim::test::fragsim({"explain", "--message", folder / "none.txt"}).status == 3);
    CHECK(fragsim::test::fragsim({"explain", "--message", source_dir() + "/README.md"}).status == 3);
    check_usage({"explain", "--message", folder / "error.txt", "--capacity", "1GiB"}, "by itself");
    check_usage({"explain"}, "a trace or a message");
    check_usage({"explain", kVit, "--message", folder / "error.txt"}, "a trace or a message");
}

TEST_CASE("explain writes its page beside its text", "[cli][explain]") {
    TempFolder folder;
    const Ended ended = fragsim::test::fragsim({"explain", kUnet, "--report", "html=" + (folder / "why.html")});
    CHECK(ended.status == 0);
    CHECK(contains(ended.out, "Verdict: "));
    CHECK(contains(ended.err, "wrote "));
    CHECK(read_file(folder / "why.html").starts_with("<!doctype html>"));
    check_usage({"explain", kUnet, "--report", "table"}, "standard output");
    check_usage({"explain", kUnet, "--report", "html=-"}, "standard output");
    CHECK(fragsim::test::fragsim({"explain", "--report", "html=" + (folder / "b.html"), kUnet}).status == 0);
    check_usage({"explain", kUnet, "--policy", "caching", "--policy", "expandable"}, "one policy");
}

TEST_CASE("a recording that begins in mid-run is judged from what was live, and says so", "[cli][explain][tune]") {
    const std::string ring = "traces/samples/gpt2_varlen.ring.pickle.gz";
    const json explained = run_json({"explain", ring});
    CHECK(explained["settings_start_from_live_buffers"] == true);
    for (const json& setting : explained["settings"])
        CHECK(setting["min_capacity_bytes"] > (std::int64_t{7} << 30));  // live at the start
    for (const char* command : {"explain", "tune"})
        CHECK(contains(fragsim::test::fragsim({command, ring}).out, "starts in mid-run: "));
}

TEST_CASE(
    "an allocator that is not modelled with private pools is not advised to programs that use them", "[cli][explain]") {
    const std::string graphs = "traces/samples/graphs.default.pickle.gz";
    for (const json& setting : run_json({"explain", graphs})["settings"])
        CHECK(setting["label"] != "backend:cudaMallocAsync");
    CHECK_FALSE(contains(fragsim::test::fragsim({"tune", graphs}).out, "cudaMallocAsync"));
}

TEST_CASE("tune names a setting that does what it says", "[cli][tune]") {
    const json tuned = run_json({"tune", kUnet, "--capacity", "1.75GiB"});
    CHECK(tuned["schema"]["name"] == "fragsim.tuning");
    CHECK(tuned["folklore"].size() == 5);
    CHECK_FALSE(tuned["exhausted"].get<bool>());
    for (const json& key : tuned["keys"]) CHECK(key["cover"]["complete"] == true);
    for (const char* which : {"best", "simplest_within_1_percent", "default"}) {
        const json& setting = tuned[which];
        const json replayed = run_json({"replay", kUnet, "--alloc-conf", setting["PYTORCH_CUDA_ALLOC_CONF"],
            "--capacity", "1.75GiB"})["results"][0];
        INFO(which << ": " << setting);
        CHECK(replayed["metrics"]["reserved_bytes.all.peak"] == setting["reserved_bytes.all.peak"]);
        CHECK(replayed["metrics"]["num_ooms"] == setting["num_ooms"]);
        CHECK(replayed["metrics"]["driver_time_ns"] == setting["driver_time_ns"]);
    }
    CHECK(tuned["best"]["num_ooms"] <= tuned["default"]["num_ooms"]);
}

TEST_CASE("tune and explain print the same at any number of jobs", "[cli][tune][explain]") {
    for (const char* command : {"tune", "explain"}) {
        const Ended one = fragsim::test::fragsim({command, kUnet, "--jobs", "1"});
        CHECK(one.status == 0);
        CHECK(one.out == fragsim::test::fragsim({command, kUnet, "--jobs", "4"}).out);
    }
}

TEST_CASE("tune finds one setting for several traces", "[cli][tune]") {
    const json tuned = run_json({"tune", kUnet, "traces/samples/oom.default.pickle.gz"});
    CHECK(tuned["traces"].size() == 2);
    CHECK(tuned["traces"][1]["memory_limit_bytes"] > 0);  // read off that recording
    CHECK(tuned["traces"][0]["memory_limit_bytes"].is_null());
    CHECK(tuned["best"]["num_ooms"] == 0);
}

TEST_CASE("tune's objective is checked and obeyed", "[cli][tune]") {
    check_usage({"tune", kUnet, "--objective", "speed"}, "'speed'");
    check_usage({"tune", kUnet, "--objective", "stall,stall"}, "'stall,stall'");
    const json least_stall = run_json({"tune", kUnet, "--objective", "survive,stall"});
    const json least_memory = run_json({"tune", kUnet});
    CHECK(least_stall["best"]["driver_time_ns"] <= least_memory["best"]["driver_time_ns"]);
    CHECK(least_memory["best"]["reserved_bytes.all.peak"] <= least_stall["best"]["reserved_bytes.all.peak"]);
}
