// The device that answers as the recorded one did.
#include "lib/replay/recorded_device.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

constexpr StreamId kStream{0};
constexpr Address kA = 0x7f0000000000, kB = 0x7f0002000000;

// Before event 1: A; before event 3: A back, B.
const std::vector<SegmentEvent> kEvents{{1, SegmentEventKind::alloc, kStream, kA, 20 * kMiB},
    {3, SegmentEventKind::free, kStream, kA, 20 * kMiB}, {3, SegmentEventKind::alloc, kStream, kB, 30 * kMiB}};

struct Differences {
    std::vector<std::string> expected, actual;
    RecordedDevice device{
        kEvents, [this](const std::string& e, const std::string& a) { expected.push_back(e), actual.push_back(a); }};
};

}  // namespace

TEST_CASE("a recorded device gives the recorded addresses to the recorded calls", "[unit][recorded-device]") {
    Differences run;
    run.device.begin_event(0);
    run.device.end_event();
    run.device.begin_event(1);
    CHECK(run.device.malloc(20 * kMiB, kStream) == kA);
    run.device.end_event();
    run.device.begin_event(3);
    run.device.free(kA, 20 * kMiB, kStream);
    CHECK(run.device.malloc(30 * kMiB, kStream) == kB);
    run.device.end_event();
    CHECK(run.expected.empty());
    CHECK(run.device.exact() == 3);
}

TEST_CASE("a recorded device refuses what the recording does not have, without calling that a difference",
    "[unit][recorded-device]") {
    Differences run;
    run.device.begin_event(0);
    CHECK_FALSE(run.device.malloc(20 * kMiB, kStream));  // not yet
    run.device.begin_event(1);
    CHECK_FALSE(run.device.malloc(22 * kMiB, kStream));
    CHECK_FALSE(run.device.malloc(20 * kMiB, {1}));
    CHECK(run.device.malloc(20 * kMiB, kStream) == kA);
    CHECK(run.expected.empty());
}

TEST_CASE("a recorded device reports a free that the recording does not have", "[unit][recorded-device]") {
    Differences run;
    run.device.begin_event(1);
    run.device.free(kB, 30 * kMiB, kStream);
    REQUIRE(run.expected.size() == 1);
    CHECK(run.expected[0].find("segment_alloc") != std::string::npos);
    CHECK(run.actual[0].find("segment_free") != std::string::npos);
}

TEST_CASE("a recorded device reports calls that were due and did not come", "[unit][recorded-device]") {
    Differences run;
    run.device.begin_event(3);
    CHECK(run.device.malloc(20 * kMiB, kStream) == kA);
    run.device.end_event();
    CHECK(run.expected.size() == 2);
    CHECK(run.device.exact() == 1);
    CHECK(run.actual[0] == "nothing");
}
