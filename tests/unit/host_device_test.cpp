#include "lib/device/host_device.hpp"

#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

constexpr StreamId kStream{0};

}  // namespace

TEST_CASE("the host device refuses what exceeds its capacity and serves what fits exactly", "[unit][device]") {
    HostDevice device({.capacity = 100 * kMiB});
    const auto first = device.malloc(60 * kMiB, kStream);
    REQUIRE(first);
    CHECK_FALSE(device.malloc(40 * kMiB + 1, kStream));
    CHECK(device.malloc(40 * kMiB, kStream));
    CHECK_FALSE(device.malloc(1, kStream));
    device.free(*first, 60 * kMiB, kStream);
    CHECK(device.malloc(60 * kMiB, kStream));
}

TEST_CASE("memory is taken in whole pages of 2 MiB", "[unit][device]") {
    HostDevice device({.capacity = 4 * kMiB});
    CHECK_FALSE(device.malloc(4 * kMiB + 1, kStream));
    const auto odd = device.malloc(2 * kMiB + 1, kStream);  // two pages
    REQUIRE(odd);
    CHECK_FALSE(device.malloc(1, kStream));
    device.free(*odd, 2 * kMiB + 1, kStream);
    CHECK(device.malloc(4 * kMiB, kStream));
}

TEST_CASE("requests below 2 MiB share a page", "[unit][device]") {
    HostDevice device({.capacity = 2 * kMiB});
    const auto a = device.malloc(kMiB, kStream), b = device.malloc(kMiB - 512, kStream),
               c = device.malloc(512, kStream);
    REQUIRE((a && b && c));
    CHECK_FALSE(device.malloc(512, kStream));  // the page is full, another one does not fit
    device.free(*b, kMiB - 512, kStream);
    CHECK(device.malloc(512, kStream));
    CHECK_FALSE(device.malloc(2 * kMiB, kStream));
}

TEST_CASE("a page goes back with its last piece", "[unit][device]") {
    HostDevice device({.capacity = 2 * kMiB});
    const auto a = device.malloc(512, kStream), b = device.malloc(512, kStream);
    device.free(*a, 512, kStream);
    CHECK_FALSE(device.malloc(2 * kMiB, kStream));
    device.free(*b, 512, kStream);
    CHECK(device.malloc(2 * kMiB, kStream));
}

TEST_CASE("a host device without a capacity never refuses", "[unit][device]") {
    HostDevice device({});
    for (int i = 0; i < 100; ++i) REQUIRE(device.malloc(100 * kGiB, kStream));
}

TEST_CASE("a refused call leaves no trace", "[unit][device]") {
    HostDevice with({.capacity = 100 * kMiB}), without({.capacity = 100 * kMiB});
    CHECK_FALSE(with.malloc(kGiB, kStream));
    CHECK(with.malloc(30 * kMiB, kStream) == without.malloc(30 * kMiB, kStream));
    CHECK_FALSE(with.malloc(80 * kMiB, kStream));
    CHECK(with.malloc(2 * kMiB, kStream) == without.malloc(2 * kMiB, kStream));
}

TEST_CASE("segments that were there before take part of the capacity", "[unit][device]") {
    HostDevice device({.capacity = 100 * kMiB});
    const Address start = 0x7f0000000000;
    device.adopt({{start, 60 * kMiB}});
    CHECK_FALSE(device.malloc(42 * kMiB, kStream));
    const auto more = device.malloc(40 * kMiB, kStream);
    REQUIRE(more);
    CHECK((*more + 40 * kMiB <= start || *more >= start + 60 * kMiB));
    device.free(start, 60 * kMiB, kStream);
    CHECK(device.malloc(60 * kMiB, kStream));
}

TEST_CASE("small ranges of address space lie above large ones, and large ones one behind the other", "[unit][device]") {
    HostDevice device({});
    const Address small = device.reserve(4 * kMiB, kStream), first = device.reserve(32 * kMiB, kStream),
                  second = device.reserve(64 * kMiB, kStream), smaller = device.reserve(2 * kMiB, kStream);
    CHECK(second == first + 32 * kMiB);
    CHECK(small > second);
    CHECK(smaller > second);
    CHECK(smaller >= small + 4 * kMiB);
}
