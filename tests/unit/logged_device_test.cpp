#include "lib/device/logged_device.hpp"

#include <numeric>

#include "lib/device/host_device.hpp"
#include "tests/support/catch.hpp"

using namespace fragsim;

TEST_CASE("each logged call has its price, and a refused one is in none", "[unit][device]") {
    HostDevice host({.capacity = 100 * kMiB});
    const CostModel& costs = CostModel::h200();
    LoggedDevice device(host, costs);
    const Address address = *device.malloc(20 * kMiB, {0});
    REQUIRE_FALSE(device.malloc(kGiB, {0}));
    device.record({0});
    device.free(address, 20 * kMiB, {0});
    REQUIRE(device.calls().size() == 3);
    CHECK(device.calls()[0].modelled_ns == Approx(costs.malloc_ns(20 * kMiB, 0)));
    CHECK(device.calls()[1].modelled_ns == Approx(costs.profile().record_ns));
    CHECK(device.calls()[2].modelled_ns == Approx(costs.free_ns(20 * kMiB, 1)));
}

TEST_CASE("what a pool's growth costs is the price of the chunks", "[unit][device]") {
    HostDevice host({});
    LoggedDevice device(host, CostModel::h200());
    const auto pool = device.create_pool({});
    pool->free(*pool->allocate(40 * kMiB, {0}), {0});
    double sum = 0;
    for (const DriverCall& call : device.calls()) sum += call.modelled_ns;
    CHECK(sum == Approx(device.modelled_ns()));
    CHECK(device.calls().front().kind == DriverCallKind::map);
    CHECK(device.calls().front().modelled_ns > 0);
}
