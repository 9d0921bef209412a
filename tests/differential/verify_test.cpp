// Self-replay of recordings of real runs: every allocation at its recorded address, every driver call, every out of
// memory, the blocks at the end.
#include <fmt/format.h>

#include <filesystem>

#include "lib/replay/verify.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"
#include "tests/unit/traces_support.hpp"
#include "traces/registry.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

// How many devices' histories were compared.
int check_exact(const std::string& path, const Limits& limits = {}) {
    INFO(path);
    const Recording recording = read_recording(path);
    REQUIRE(recording.settings);
    std::vector<std::string> warnings;
    const PolicySpec spec = policy_from_alloc_conf(recording.settings->alloc_conf, warnings);
    int histories = 0;
    for (const Trace& trace : recording.traces) {
        if (trace.events.empty()) continue;
        ++histories;
        const VerifyResult result = verify(trace, [&](Device& device) {
            return spec.info->make(spec.settings(), {device, limits, trace.pools});
        });
        INFO("device " << trace.device << " under " << spec.label());
        if (const auto& divergence = result.first_divergence)
            FAIL_CHECK(fmt::format(
                "event {}: expected {}, actual {}", divergence->event, divergence->expected, divergence->actual));
        CHECK(result.allocs > 0);
        CHECK(result.allocs_exact == result.allocs);
        CHECK(result.segment_events == static_cast<std::int64_t>(trace.segment_events.size()));
        CHECK(result.segment_events_exact == result.segment_events);
        CHECK(result.ooms_exact == result.ooms);
        CHECK(result.end_exact == true);
    }
    return histories;
}

}  // namespace

TEST_CASE("the replay of every bundled recording is exact", "[differential][verify]") {
    int histories = 0;
    for (const auto& file : std::filesystem::directory_iterator(source_dir() + "/traces/samples"))
        if (file.path().string().ends_with(".pickle.gz")) histories += check_exact(file.path().string());
    CHECK(histories == 15);
}

TEST_CASE("an empty_cache is told from a release of oversize blocks and from a retry", "[differential][verify]") {
    const std::string folder = source_dir() + "/tests/data/empty_cache/";
    const Limits limit{{}, 3'145'728'000};
    for (const Limits& known : {Limits{}, limit}) {
        CHECK(check_exact(folder + "split32.pickle.gz", known) == 1);
        CHECK(check_exact(folder + "expandable.pickle.gz", known) == 1);
    }
    CHECK(check_exact(folder + "split128.pickle.gz") == 1);
}

TEST_CASE(
    "what generated programs recorded is exact without their calls of empty_cache", "[differential][verify][shared]") {
    const auto file = shared_file("truth/programs.jsonl.gz");
    if (!file) return;
    int programs = 0;
    for_each_line(*file, [&](const std::string& line) {
        const auto recorded = nlohmann::json::parse(line);
        const std::string alloc_conf = recorded["alloc_conf"];
        // The start of expandable segments is worked out from the picture at the end, which these lines lack.
        if (alloc_conf.find("expandable") != std::string::npos || alloc_conf.find("roundup") != std::string::npos)
            return;
        nlohmann::json history = nlohmann::json::array();
        for (const auto& event : recorded["events"])
            history.push_back({{"action", event[0]}, {event[0] == "oom" ? "device_free" : "addr", event[1]},
                {"size", event[2]}, {"stream", event[3]}});
        std::vector<std::string> warnings;
        const PolicySpec spec = policy_from_alloc_conf(alloc_conf, warnings);
        const TorchSettings torch = spec.info->torch_settings(spec.settings());
        nlohmann::json settings = {{"max_split_size", torch.max_split_size},
            {"garbage_collection_threshold", torch.garbage_collection_threshold}};
        const nlohmann::json document = {
            {"segments", nlohmann::json::array()}, {"device_traces", {history}}, {"allocator_settings", settings}};
        const Recording recording = read_as("pytorch-json", document.dump());
        Limits limits;
        if (!recorded["limit_bytes"].is_null()) limits.memory_limit = recorded["limit_bytes"].get<Bytes>();
        const Trace& trace = recording.traces.at(0);
        const VerifyResult result = verify(trace, [&](Device& device) {
            return spec.info->make(spec.settings(), {device, limits, trace.pools});
        });
        INFO(recorded["name"] << " under '" << alloc_conf << "'");
        CHECK(result.exact());
        ++programs;
    });
    CHECK(programs > 50);
}

TEST_CASE("the replay of every recording is exact", "[differential][verify][shared]") {
    const auto folder = shared_file("truth/workloads");
    if (!folder) return;
    for (const auto& file : std::filesystem::directory_iterator(*folder)) {
        const std::string name = file.path().filename().string();
        // CUDA graph trees set a pool back to a checkpoint, which a snapshot does not show (policies/README.md).
        if (name.ends_with(".pickle.gz") && !name.starts_with("compiled"))
            CHECK(check_exact(file.path().string()) >= 1);
    }
}

TEST_CASE("a recording that was altered is not exact, and the first divergence says where", "[differential][verify]") {
    Recording recording = read_recording(source_dir() + "/traces/samples/streams.default.pickle.gz");
    Trace& trace = recording.traces.front();
    const auto replayed = [&] {
        return verify(trace, [&](Device& device) { return policies().front().make({}, {device, {}, trace.pools}); });
    };
    REQUIRE(replayed().exact());

    std::uint32_t altered = 0;  // an allocation in the middle
    for (std::uint32_t i = 0; i < trace.events.size() / 2; ++i)
        if (trace.events[i].kind() == EventKind::alloc) altered = i;
    trace.buffers[trace.events[altered].subject].recorded_address += 512;
    const VerifyResult moved = replayed();
    CHECK_FALSE(moved.exact());
    REQUIRE(moved.first_divergence);
    CHECK(moved.first_divergence->event == altered);
    CHECK(moved.allocs_exact == moved.allocs - 1);
    trace.buffers[trace.events[altered].subject].recorded_address -= 512;

    trace.segment_events.pop_back();
    CHECK_FALSE(replayed().exact());
}
