// The engine: skipping, stopping, counting.
#include "lib/replay/replay.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

TEST_CASE("an allocation that fails is skipped together with its free, and the replay goes on", "[unit][replay]") {
    Playback play(
        script("a 0 60M; a 1 60M; m here; f 1; a 2 20M; f 0; f 2"), policy("caching"), {.limits = {{}, 100 * kMiB}});
    play.run();
    CHECK(play.outcome.ooms == 1);
    CHECK(play.outcome.ops == 6);
    CHECK_FALSE(play.outcome.stopped);
    REQUIRE(play.placements.size() == 3);
    CHECK(play.placements[0]);
    CHECK_FALSE(play.placements[1]);
    CHECK(play.placements[2]);
    CHECK(play.policy->stats().active.all.current == 0);
}

TEST_CASE("a replay can stop at the first out of memory", "[unit][replay]") {
    Playback play(script("a 0 60M; a 1 60M; a 2 60M"), policy("caching"), {{{}, 100 * kMiB}, {}, 100 * kMiB, OnOom::stop});
    play.run();
    CHECK(play.outcome.stopped);
    CHECK(play.outcome.ooms == 1);
    CHECK(play.outcome.ops == 2);
}

TEST_CASE("driver calls carry the op during which they were made", "[unit][replay]") {
    Playback play(script("m one; a 0 30M; r 0 1; f 0; a 1 1; c 0; e; a 2 5M"), policy("caching"));
    play.run();
    std::vector<std::uint32_t> ops;
    for (const DriverCall& call : play.device.calls()) ops.push_back(call.op);
    // 0: a 0, 1: a 1, 2: c 0, empty_cache before op 3, 3: a 2
    CHECK(ops == std::vector<std::uint32_t>{0, 1, 3, 3});
}

TEST_CASE("the program can be taken to let go only when the recording saw the free complete", "[unit][replay]") {
    const Trace trace = script("a 0 60M; r 0 1; f 0; a 1 60M; c 0");
    for (const auto& [frees, ooms] : {std::pair(Frees::requested, 0u), std::pair(Frees::completed, 1u)}) {
        HostDevice host({});
        LoggedDevice device(host, CostModel::h200());
        const auto allocator = policy("caching")({device, {{}, 100 * kMiB}, {}});
        CHECK(replay(trace, *allocator, device, {}, {OnOom::skip, frees}).ooms == ooms);
    }
}

TEST_CASE("a replay can end before a chosen event", "[unit][replay]") {
    HostDevice host({});
    LoggedDevice device(host, CostModel::h200());
    const auto allocator = policy("caching")({device, {}, {}});
    const ReplayOutcome outcome =
        replay(script("a 0 1M; a 1 1M; f 0"), *allocator, device, {}, {OnOom::skip, Frees::requested, 2});
    CHECK(outcome.ops == 2);
    CHECK(allocator->stats().active.all.current == 2);
}
