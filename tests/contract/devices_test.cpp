// What a policy may rely on with every device that allocates memory of its own.
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "lib/device/host_device.hpp"
#include "lib/device/logged_device.hpp"
#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

// A device and what it is built on.
struct Made {
    std::unique_ptr<HostDevice> host;
    std::unique_ptr<LoggedDevice> logged;
    Device& device;
};

struct Kind {
    const char* name;
    Made (*make)(std::optional<Bytes> capacity);
};

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all{
        {"host",
            [](std::optional<Bytes> capacity) {
                auto host = std::make_unique<HostDevice>(HostDevice::Config{.capacity = capacity});
                Device& device = *host;
                return Made{std::move(host), nullptr, device};
            }},
        {"logged host",
            [](std::optional<Bytes> capacity) {
                auto host = std::make_unique<HostDevice>(HostDevice::Config{.capacity = capacity});
                auto logged = std::make_unique<LoggedDevice>(*host, CostModel::h200());
                Device& device = *logged;
                return Made{std::move(host), std::move(logged), device};
            }},
    };
    return all;
}

constexpr StreamId kStream{0};

template <class Check>
void for_each_device(Check check) {
    for (const Kind& kind : kinds()) {
        INFO("device " << kind.name);
        check(kind);
    }
}

}  // namespace

TEST_CASE("a device's ranges are aligned and do not overlap, also after frees", "[contract][device]") {
    for_each_device([](const Kind& kind) {
        Made made = kind.make({});
        std::mt19937 random(1);
        std::map<Address, Bytes> live;
        for (int i = 0; i < 2000; ++i) {
            if (live.size() > 30 && random() % 2) {
                const auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
                made.device.free(victim->first, victim->second, kStream);
                live.erase(victim);
                continue;
            }
            const Bytes bytes = 1 + static_cast<Bytes>(random() % (random() % 2 ? 2 * kMiB : 60 * kMiB));
            const auto address = made.device.malloc(bytes, kStream);
            REQUIRE(address);
            REQUIRE(*address % 512 == 0);
            const auto above = live.lower_bound(*address);
            REQUIRE((above == live.end() || above->first >= *address + static_cast<Address>(bytes)));
            REQUIRE((above == live.begin() ||
                     std::prev(above)->first + static_cast<Address>(std::prev(above)->second) <= *address));
            live[*address] = bytes;
        }
    });
}

TEST_CASE("a device refuses beyond its capacity, as a value, and serves again after a free", "[contract][device]") {
    for_each_device([](const Kind& kind) {
        Made made = kind.make(64 * kMiB);
        const auto first = made.device.malloc(40 * kMiB, kStream);
        REQUIRE(first);
        for (int i = 0; i < 3; ++i) CHECK_FALSE(made.device.malloc(26 * kMiB, kStream));
        CHECK(made.device.malloc(24 * kMiB, kStream));
        made.device.free(*first, 40 * kMiB, kStream);
        CHECK(made.device.malloc(40 * kMiB, kStream));
    });
}

TEST_CASE("a device answers the same calls the same way, refusals between them or not", "[contract][device]") {
    for_each_device([](const Kind& kind) {
        Made one = kind.make(kGiB), two = kind.make(kGiB);
        std::mt19937 random(2);
        std::vector<std::pair<Address, Bytes>> live;
        for (int i = 0; i < 300; ++i) {
            if (random() % 3 == 0) CHECK_FALSE(two.device.malloc(2 * kGiB, kStream));
            if (!live.empty() && random() % 2) {
                std::swap(live[random() % live.size()], live.back());
                one.device.free(live.back().first, live.back().second, kStream);
                two.device.free(live.back().first, live.back().second, kStream);
                live.pop_back();
                continue;
            }
            const Bytes bytes = 1 + static_cast<Bytes>(random() % (30 * kMiB));
            const auto address = one.device.malloc(bytes, kStream);
            REQUIRE(two.device.malloc(bytes, kStream) == address);
            if (address) live.emplace_back(*address, bytes);
        }
    });
}

TEST_CASE("address space is apart from memory: only what is mapped counts", "[contract][device]") {
    for_each_device([](const Kind& kind) {
        Made made = kind.make(64 * kMiB);
        const Address range = made.device.reserve(100 * kGiB, kStream),
                      other = made.device.reserve(100 * kGiB, kStream);
        CHECK((range + 100 * kGiB <= other || other + 100 * kGiB <= range));
        CHECK(made.device.map(range, 40 * kMiB, 20 * kMiB, kStream));
        CHECK_FALSE(made.device.map(range + 40 * kMiB, 40 * kMiB, 20 * kMiB, kStream));  // all or nothing
        CHECK_FALSE(made.device.malloc(26 * kMiB, kStream));
        const auto beside = made.device.malloc(24 * kMiB, kStream);
        REQUIRE(beside);
        made.device.free(*beside, 24 * kMiB, kStream);
        CHECK(made.device.map(range + 40 * kMiB, 20 * kMiB, 20 * kMiB, kStream));
        made.device.unmap(range, 60 * kMiB, 20 * kMiB, kStream);
        CHECK(made.device.malloc(64 * kMiB, kStream));
        made.device.unreserve(range, 100 * kGiB, kStream);
        made.device.unreserve(other, 100 * kGiB, kStream);
        CHECK(made.device.total_memory() > 0);
    });
}

TEST_CASE("a logged device remembers the calls that succeeded, with the op they belong to, and what all would cost",
    "[contract][device]") {
    HostDevice host({.capacity = 50 * kMiB});
    LoggedDevice device(host, CostModel::h200());
    device.begin_op(3);
    const auto address = device.malloc(40 * kMiB, {1});
    CHECK_FALSE(device.malloc(20 * kMiB, {1}));
    device.begin_op(5);
    device.free(*address, 40 * kMiB, {1});
    REQUIRE(device.calls().size() == 2);
    CHECK(device.calls()[0].op == 3);
    CHECK(device.calls()[0].kind == DriverCallKind::malloc);
    CHECK(device.calls()[0].bytes == 40 * kMiB);
    CHECK(device.calls()[0].address == *address);
    CHECK(device.calls()[0].stream == StreamId{1});
    CHECK(device.calls()[1].op == 5);
    CHECK(device.calls()[1].kind == DriverCallKind::free);
    CHECK(device.refused() == 1);
    const CostModel& costs = CostModel::h200();
    CHECK(device.modelled_ns() ==
          Approx(costs.malloc_ns(40 * kMiB, 0) + costs.malloc_ns(20 * kMiB, 1) + costs.free_ns(40 * kMiB, 1)));
}
