// The policy that follows an offline plan.
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// Where the buffers were put, as offsets from the lowest, in KiB; "oom" where they were not.
std::string offsets(const Playback& play) {
    Address lowest = ~Address{0};
    for (const auto& placement : play.placements)
        if (placement) lowest = std::min(lowest, placement->address);
    std::string out;
    for (const auto& placement : play.placements)
        out += placement ? std::to_string((placement->address - lowest) / 1024) + ' ' : "oom ";
    return out;
}
void run(Playback& play) {
    play.run();
    CHECK(describe(play.auditor.findings()) == "");
}

}  // namespace

TEST_CASE("the planner gets one range of its plan's height and puts every buffer at its offset", "[unit][planner]") {
    // Largest first: 4 at 0, 3 above it; first fit would have put the 3 at 0 and the 4 on top of 2 and 3.
    Playback play(script("a 0 2M; a 1 3M; f 0; a 2 4M; f 1; f 2; e"), policy("planner"));
    run(play);
    CHECK(offsets(play) == "0 4096 0 ");
    CHECK(describe(play.device.calls()) == "S0:7M -S0");
    CHECK(play.policy->stats().reserved_bytes.all.peak == 7 * kMiB);
}

TEST_CASE(
    "the planner's range stays until the cache is emptied with nothing in use, and is got again", "[unit][planner]") {
    Playback play(script("a 0 2M; e; f 0; e; a 1 1M; a 2 1M; f 1; f 2"), policy("planner"));
    run(play);
    CHECK(describe(play.device.calls()) == "S0:2M -S0 S1:2M");
}

TEST_CASE("memory whose free waits for a stream is planned to be in use until it completes", "[unit][planner]") {
    Playback waits(script("a 0 2M; f 0; a 1 2M; c 0; f 1"), policy("planner"));
    run(waits);
    CHECK(waits.policy->stats().reserved_bytes.all.peak == 4 * kMiB);
    Playback completes(script("a 0 2M; f 0; c 0; a 1 2M; f 1"), policy("planner"));
    run(completes);
    CHECK(completes.policy->stats().reserved_bytes.all.peak == 2 * kMiB);
}

TEST_CASE("what the plan leaves out under a capacity is out of memory, the rest keep their places", "[unit][planner]") {
    Playback play(script("a 0 4M; a 1 8M; a 2 2M; f 0; f 1; a 3 4M"), policy("planner"), {{6 * kMiB, {}}, 6 * kMiB, 6 * kMiB});
    run(play);
    CHECK(offsets(play) == "0 oom 4096 0 ");
    CHECK(play.policy->stats().num_ooms == 1);
}

TEST_CASE(
    "a request outside the plan takes the lowest gap, or memory of its own where there is room", "[unit][planner]") {
    Playback play(script("a 0 4M; f 0; a 1 2M"), policy("planner"), {{6 * kMiB, {}}, 6 * kMiB, 6 * kMiB});
    run(play);
    Policy& planner = *play.policy;
    const auto gap = planner.allocate({7}, {kMiB, {0}});
    REQUIRE(gap);
    CHECK(gap->address == play.placements[1]->address + 2 * kMiB);
    const auto own = planner.allocate({8}, {2 * kMiB, {0}});
    REQUIRE(own);
    CHECK(planner.stats().segment.all.current == 2);
    CHECK_FALSE(planner.allocate({9}, {kMiB + 1, {0}}));
    CHECK(planner.stats().num_ooms == 1);
    planner.free({8});
    planner.empty_cache();
    CHECK(planner.stats().segment.all.current == 1);
}

TEST_CASE("a request outside the plan waits for frees to complete if that makes room, one left out of it does not",
    "[unit][planner]") {
    Playback play(script("a 0 4M; a 1 8M; f 0; c 0"), policy("planner"), {{4 * kMiB, {}}, 4 * kMiB, 4 * kMiB});
    Policy& planner = *play.policy;
    REQUIRE(planner.allocate({0}, {4 * kMiB, {0}}));
    planner.free_requested({0});
    CHECK_FALSE(planner.allocate({1}, {8 * kMiB, {0}}));
    CHECK(planner.stats().num_sync_all_streams == 0);
    CHECK(planner.allocate({7}, {kMiB, {0}}));
    CHECK(planner.stats().num_sync_all_streams == 1);
}

TEST_CASE("a buffer whose planned place is taken, wholly or in part, goes elsewhere", "[unit][planner]") {
    const Trace trace = script("a 0 1M; f 0; a 1 4M");
    for (const bool from_the_start : {true, false}) {
        Playback play(trace, policy("planner"));
        Policy& planner = *play.policy;
        REQUIRE(planner.allocate({0}, {kMiB, {0}}));
        if (from_the_start) planner.free({0});
        const auto stray = planner.allocate({7}, {kMiB, {0}});
        if (!from_the_start) planner.free({0});
        const auto planned = planner.allocate({1}, {4 * kMiB, {0}});
        REQUIRE((stray && planned));
        CHECK(planner.stats().segment.all.current == 2);
        CHECK(planner.stats().active_bytes.all.current == 5 * kMiB);
    }
}

TEST_CASE("the plan keeps to the whole pages that a device has under a capacity", "[unit][planner]") {
    // 5M together, which the device would serve from three pages of 2M.
    Playback play(script("a 0 3M; a 1 2M; f 0; f 1"), policy("planner"), {{5 * kMiB, {}}, 5 * kMiB, 5 * kMiB});
    run(play);
    CHECK(offsets(play) == "0 oom ");
    CHECK(describe(play.device.calls()) == "S0:3M");
}

TEST_CASE("a planner that was told nothing serves everything as it comes", "[unit][planner]") {
    HostDevice device({});
    const auto planner = policy("planner")({device, {}, {}});
    const auto first = planner->allocate({0}, {kMiB, {0}});
    REQUIRE(first);
    planner->free({0});
    const auto second = planner->allocate({1}, {kMiB, {0}});
    REQUIRE(second);
    CHECK(second->address == first->address);
}

TEST_CASE("the planner's algorithm and alignment are parameters", "[unit][planner]") {
    // OP2 of spec/policies.md, section 8: the order of size needs 8, that of start 10.
    const Trace op2 = script("a 2 2M; a 1 2M; f 2; a 0 3M; a 3 3M; f 1; f 0; f 3");
    const auto peak = [&](const std::string& spec) {
        Playback play(op2, policy(spec));
        run(play);
        return play.policy->stats().reserved_bytes.all.peak / kMiB;
    };
    CHECK(peak("planner") == 8);
    CHECK(peak("planner:algorithm=greedy-size") == 8);
    CHECK(peak("planner:algorithm=greedy-start") == 10);
    CHECK(peak("planner:align_bytes=1MiB") == 8);
    CHECK(peak("planner:align_bytes=4MiB") == 12);
    Playback coarse(script("a 0 1; a 1 513"), policy("planner:align_bytes=1024"));
    run(coarse);
    CHECK(coarse.policy->stats().allocated_bytes.all.peak == 2048);
    HostDevice device({});
    CHECK(refusal([&] { policy("planner:align_bytes=2GiB")({device, {}, {}}); }).code == ErrorCode::usage);
}
