// Self-replay of recordings of real runs: every allocation at its recorded address, every driver call, every out of memory,
// the blocks at the end.
#include <fmt/format.h>

#include "lib/replay/verify.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"
#include "traces/registry.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

// How many devices' histories were compared.
int check_exact(const std::string& path) {
    INFO(path);
    const Recording recording = read_recording(path);
    REQUIRE(recording.settings);
    std::vector<std::string> warnings;
    const PolicySpec spec = policy_from_alloc_conf(recording.settings->alloc_conf, warnings);
    int histories = 0;
    for (const Trace& trace : recording.traces) {
        if (trace.events.empty()) continue;
        ++histories;
        const VerifyResult result = verify(trace, [&](Device& device) { return spec.info->make(spec.given, {device, {}, trace.pools}); });
        INFO("device " << trace.device << " under " << spec.label());
        if (const auto& divergence = result.first_divergence)
            FAIL_CHECK(fmt::format("event {}: expected {}, actual {}", divergence->event, divergence->expected, divergence->actual));
        CHECK(result.allocs > 0);
        CHECK(result.allocs_exact == result.allocs);
        CHECK(result.segment_events == static_cast<std::int64_t>(trace.segment_events.size()));
        CHECK(result.segment_events_exact == result.segment_events);
        CHECK(result.ooms_exact == result.ooms);
        CHECK(result.end_exact == true);
    }
    return histories;
}

// Complete native recordings of one or several streams (issue 2).
constexpr const char* kWorkloads[] = {"vit_l_amp.default", "vit_l_fp32.default", "vit_multires.f70", "vit_multires.f75", "vit_multires.f80", "vit_multires.f85",
    "vit_multires.free", "vit_multires.s128f80", "gpt2_varlen.default", "gpt2_varlen.late", "gpt2_varlen.split128", "gpt2_varlen.split128nsr", "gpt2_varlen.split512",
    "gpt2_varlen.stacks", "detection.default", "detection.split64", "unet_multires.default", "unet_multires.split128", "streams.default", "oom.default",
    "bert_infer.stacksall", "ddp.default.rank0", "ddp.default.rank1", "twodev.default"};

}  // namespace

TEST_CASE("the replay of every bundled recording is exact", "[differential][verify]") {
    for (const char* name : {"vit_multires.f70", "vit_multires.s128f80", "gpt2_varlen.split128", "gpt2_varlen.default", "detection.default", "oom.default", "streams.default",
             "unet_multires.default"})
        CHECK(check_exact(fmt::format("{}/traces/samples/{}.pickle.gz", source_dir(), name)) == 1);
    CHECK(check_exact(source_dir() + "/traces/samples/twodev.default.pickle.gz") == 2);
}

TEST_CASE("the replay of every complete native recording is exact", "[differential][verify][shared]") {
    for (const char* name : kWorkloads)
        if (const auto file = shared_file(fmt::format("truth/workloads/{}.pickle.gz", name))) CHECK(check_exact(*file) >= 1);
}

TEST_CASE("a recording that was altered is not exact, and the first divergence says where", "[differential][verify]") {
    Recording recording = read_recording(source_dir() + "/traces/samples/streams.default.pickle.gz");
    Trace& trace = recording.traces.front();
    const auto replayed = [&] { return verify(trace, [&](Device& device) { return policies().front().make({}, {device, {}, trace.pools}); }); };
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
