#include "lib/study/agreement.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/script.hpp"
#include "tests/support/upward_device.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

PlacementRecord record_on(Device& hardware, const std::string& spec, const std::string& text) {
    const Trace trace = script(text);
    LoggedDevice device(hardware, CostModel::h200());
    const auto made = policy(spec)({device, {}, {}});
    PlacementRecorder recorder(device, made->stats());
    ReplayObserver* const observers[] = {&recorder};
    replay(trace, *made, device, observers);
    return recorder.take();
}

const char* const kProgram = "a 0 30M; a 1 40M; f 0; a 2 10M; a 3 15M; f 1; f 2";

}  // namespace

TEST_CASE("two devices agree though their addresses differ", "[unit][agreement]") {
    HostDevice first({});
    UpwardDevice second;
    const Agreement agreement =
        compare_placements(record_on(first, "caching", kProgram), record_on(second, "caching", kProgram));
    CHECK(agreement.exact());
    CHECK(agreement.allocs == 4);
    CHECK(agreement.placements_equal == 4);
    CHECK(agreement.events == 7);
    CHECK_FALSE(agreement.first_difference);
}

TEST_CASE("the first difference is named by op, range and offset", "[unit][agreement]") {
    HostDevice first({}), second({});
    const Agreement agreement =
        compare_placements(record_on(first, "caching", kProgram), record_on(second, "direct", kProgram));
    CHECK_FALSE(agreement.exact());
    REQUIRE(agreement.first_difference);
    CHECK(agreement.first_difference->op == 3);  // the 10 MiB go into the 30 MiB that were freed, or get their own
    CHECK(agreement.first_difference->host == "range 0 + 0");
    CHECK(agreement.first_difference->device == "range 2 + 0");
    CHECK(agreement.largest_reserved_difference == 55 * kMiB);
}

TEST_CASE("a request that only one device serves is a difference of its own", "[unit][agreement]") {
    HostDevice first({}), second({.capacity = 50 * kMiB});
    const Agreement agreement =
        compare_placements(record_on(first, "direct", kProgram), record_on(second, "direct", kProgram));
    CHECK_FALSE(agreement.ooms_equal);
    CHECK(agreement.ooms_host == 0);
    CHECK(agreement.ooms_device == 1);
    CHECK(agreement.first_difference->device == "out of memory");
}
