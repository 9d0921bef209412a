// The native worked examples of spec/pytorch-caching-allocator.md, section 18, by their numbers, and rules around them.
// Driver calls, block lists and statistics in the notation of tests/support/playback.hpp.
#include <functional>

#include "lib/metrics/catalog.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

struct Example {
    const char* number;
    const char* policy;
    const char* calls;
    const char* driver;
    const char* memory;
    std::vector<std::pair<const char*, Bytes>> statistics = {};
    const char* device = nullptr;    // memory of the card; none: no bound
    const char* capacity = nullptr;  // what the memory fraction is taken of
};

// clang-format off
const std::vector<Example> kExamples{
    {"1", "caching", "a 0 1", "S0:2M", "S0[512A 2096640F]",
        {{"inactive_split.all.current", 1}, {"inactive_split_bytes.all.current", 2096640}, {"requested_bytes.all.current", 1}, {"allocated_bytes.all.current", 512}}},
    {"2", "caching", "a 0 1000; a 1 512; f 0; a 2 100", "S0:2M", "S0[512A 512F 512A 2095616F]",
        {{"requested_bytes.all.current", 612}, {"allocated_bytes.all.current", 1024}, {"inactive_split.all.current", 2}, {"inactive_split_bytes.all.current", 2096128}}},
    {"3", "caching", "a 0 1M", "S0:2M", "S0[1048576A 1048576F]", {{"segment.small_pool.current", 1}, {"segment.large_pool.current", 0}}},
    {"4", "caching", "a 0 1M+1", "S0:20M", "S0[1049088A 19922432F]", {{"segment.large_pool.current", 1}}},
    {"5", "caching", "a 0 10M-1", "S0:10M", "S0[10485760A]", {{"inactive_split.all.current", 0}}},
    {"6", "caching", "a 0 10M-512", "S0:20M", "S0[10485248A 10486272F]"},
    {"7", "caching", "a 0 10M+1", "S0:12M", "S0[10486272A 2096640F]"},
    {"8", "caching", "a 0 20M; f 0; a 1 19M", "S0:20M", "S0[20971520A]",
        {{"allocated_bytes.all.current", 20 * kMiB}, {"requested_bytes.all.current", 19 * kMiB}}},
    {"9", "caching", "a 0 19M; f 0; a 1 18M", "S0:20M", "S0[18874368A 2097152F]"},
    {"10", "caching", "a 0 5M; a 1 5M; a 2 5M; a 3 6M; f 0; f 2; f 1", "S0:20M S1:20M", "S0[20971520F] S1[6291456A 14680064F]",
        {{"inactive_split.all.current", 1}}},
    {"11", "caching", "a 0 6M; a 1 6M; a 2 6M; f 1; f 0", "S0:20M", "S0[12582912F 6291456A 2097152F]",
        {{"inactive_split.all.current", 2}, {"inactive_split_bytes.all.current", 14680064}}},
    {"12", "caching", "a 0 3M 0; f 0; a 1 3M 7", "S0:20M S1:20M", "S0[20971520F] S1[3145728A 17825792F]"},
    {"13", "caching", "a 0 30M; r 0 5; f 0; a 1 30M; c 0; a 2 512", "S0:30M S1:30M S2:2M", "S0[31457280F] S1[31457280A] S2[512A 2096640F]",
        {{"num_sync_all_streams", 0}}},
    {"13, before the event completes", "caching", "a 0 30M; r 0 5; f 0; a 1 30M; m waiting; a 9 512; c 0; f 9", "S0:30M S1:30M S2:2M",
        "S0[31457280F] S1[31457280A] S2[2097152F]", {{"active_bytes.all.peak", 60 * kMiB + 512}, {"allocated_bytes.all.peak", 30 * kMiB + 512}}},
    {"14", "caching", "a 0 30M; r 0 3; f 0; a 1 60M; c 0", "S0:30M -S0 S1:60M", "S1[62914560A]",
        {{"num_alloc_retries", 1}, {"num_sync_all_streams", 1}, {"num_ooms", 0}}, "80M"},
    {"15", "caching", "a 0 400M; a 1 300M; f 0; f 1; a 2 600M", "S0:400M S1:300M -S1 -S0 S2:600M", "S2[629145600A]", {{"num_alloc_retries", 1}}, "1G"},
    {"16", "caching:max_split_size_mb=200", "a 0 300M; f 0; a 1 100M; a 2 290M", "S0:300M S1:100M", "S0[314572800A] S1[104857600A]",
        {{"oversize_allocations.current", 1}, {"oversize_segments.current", 1}}},
    {"17", "caching:max_split_size_mb=200", "a 0 300M; f 0; a 1 280M", "S0:300M S1:280M", "S0[314572800F] S1[293601280A]", {{"oversize_segments.current", 2}}},
    {"18", "caching:max_split_size_mb=200", "a 0 400M; a 1 300M; f 0; f 1; a 2 700M", "S0:400M S1:300M -S0 -S1 S2:700M", "S2[734003200A]",
        {{"num_alloc_retries", 0}, {"num_sync_all_streams", 0}}, "1G"},
    {"19", "caching:max_split_size_mb=200", "a 0 600M; f 0; a 1 500M", "S0:600M -S0 S1:500M", "S1[524288000A]", {{"num_alloc_retries", 0}}, "1G"},
    {"20", "caching:per_process_memory_fraction=0.5,garbage_collection_threshold=0.6,torch_version=2.13", "a 0 30M; a 1 30M; a 2 30M; f 0; f 1; f 2; a 3 30M; a 4 40M",
        "S0:30M S1:30M S2:30M -S1 -S2 S3:40M", "S0[31457280A] S3[41943040A]", {{"num_alloc_retries", 0}}, "200M", "200M"},
    {"21", "caching:per_process_memory_fraction=0.1", "a 0 100M; a 1 4M; f 0; a 2 150M", "S0:100M S1:20M -S0 S2:150M",
        "S1[4194304A 16777216F] S2[157286400A]", {{"num_alloc_retries", 1}}, "2000M", "2000M"},
    {"22", "caching", "a 0 5M; e", "S0:20M", "S0[5242880A 15728640F]", {{"num_sync_all_streams", 1}, {"num_device_free", 0}}},
    {"24", "caching:roundup_power2_divisions=4", "a 0 1200; a 1 2048; a 2 2049; a 3 921600; a 4 1200000; a 5 21000000", "S0:2M S1:20M S2:24M",
        "S0[1536A 2048A 2560A 1048576A 1042432F] S1[1310720A 19660800F] S2[25165824A]"},
    {"25", "caching:large_segment_size_mb=12", "a 0 5M", "S0:12M", "S0[5242880A 7340032F]"},

    // Not in the list, from the sections beside.
    {"a rest of exactly 512 is split off in the small pool", "caching", "a 0 2M; f 0; a 1 1M; a 2 1M-512", "S0:20M S1:2M", "S0[20971520F] S1[1048576A 1048064A 512F]"},
    {"a limit may be reached exactly", "caching", "a 0 30M; a 1 70M", "S0:30M S1:70M", "S0[31457280A] S1[73400320A]", {{"num_ooms", 0}}, nullptr, "100M"},
    {"one byte beyond the limit is out of memory", "caching", "a 0 30M; a 1 70M+1", "S0:30M", "S0[31457280A]", {{"num_ooms", 1}, {"num_alloc_retries", 1}}, nullptr, "100M"},
    {"a request beyond 1 EiB fails before anything else happens", "caching", "a 0 30M; f 0; a 1 1073741824G+1", "S0:30M", "S0[31457280F]",
        {{"num_ooms", 1}, {"num_alloc_retries", 0}, {"num_sync_all_streams", 0}}},
    {"the flush's retry asks the driver only, though a free it waited for made room", "caching", "a 0 10M; a 1 5M; f 0; a 2 4M; f 1; a 3 16M; c 0; c 1",
        "S0:10M S1:20M -S0 S2:16M", "S1[5242880F 4194304A 11534336F] S2[16777216A]", {{"num_alloc_retries", 1}}, "40M"},
    {"empty_cache completes frees that wait", "caching", "a 0 30M; r 0 1; f 0; e; c 0", "S0:30M -S0", "", {{"active.all.current", 0}, {"reserved_bytes.all.current", 0}}},
    {"empty_cache frees large segments before small ones, smallest first", "caching", "a 0 40M; a 1 30M; a 2 1M; f 0; f 1; f 2; e", "S0:40M S1:30M S2:2M -S1 -S0 -S2", ""},
};
// clang-format on

void check(const Example& example) {
    INFO("example " << example.number << ": " << example.calls << "\n  under " << example.policy);
    Playback::Options options;
    if (example.device) options.device_memory = bytes_of(example.device);
    // Where the example speaks of a card, the limit is a part of it.
    if (example.capacity) options.audited = bytes_of(example.capacity);
    if (example.capacity) (example.device ? options.limits.capacity : options.limits.memory_limit) = options.audited;
    Playback play(script(example.calls), policy(example.policy), options);
    play.run();
    CHECK(describe(play.device.calls()) == example.driver);
    CHECK(describe(play.policy->picture(), play.device.calls()) == example.memory);
    CHECK(describe(play.auditor.findings()) == "");
    for (const auto& [wanted, expected] : example.statistics) {
        bool found = false;
        for_each_statistic(
            play.policy->stats(), [&, wanted = wanted, expected = expected](const std::string& key, Bytes value) {
                if (key != wanted) return;
                found = true;
                INFO(key);
                CHECK(value == expected);
            });
        INFO(wanted);
        CHECK(found);
    }
}

// Later segments lie lower, as they do where the driver has no hole.
class DescendingDevice final : public Device {
public:
    std::optional<Address> malloc(Bytes bytes, StreamId) override {
        return next_ -= static_cast<Address>(round_up(bytes, 2 * kMiB));
    }
    void free(Address, Bytes, StreamId) override {}
    Address reserve(Bytes, StreamId) override { return 0; }
    void unreserve(Address, Bytes, StreamId) override {}
    bool map(Address, Bytes, Bytes, StreamId) override { return false; }
    void unmap(Address, Bytes, Bytes, StreamId) override {}

private:
    Address next_ = Address{1} << 46;
};

// Which of two equal cached segments is taken (example 23): "first" or "second".
std::string taken_of_two(const std::string& spec) {
    DescendingDevice device;
    const auto allocator = policy(spec)({device, {}, {}});
    const Address first = allocator->allocate({0}, {12 * kMiB, {0}})->address;
    allocator->allocate({1}, {12 * kMiB, {0}});
    allocator->free({1});
    allocator->free({0});
    return allocator->allocate({2}, {12 * kMiB, {0}})->address == first ? "first" : "second";
}

}  // namespace

TEST_CASE("the native allocator gives every worked example of its specification", "[unit][caching]") {
    for (const Example& example : kExamples) check(example);
}

TEST_CASE("of equal segments up to 2.12 the lower is taken, from 2.13 on the older (example 23)", "[unit][caching]") {
    CHECK(taken_of_two("caching:torch_version=2.12") == "second");
    CHECK(taken_of_two("caching:torch_version=2.13") == "first");
}

TEST_CASE("within a segment equal blocks are taken from the lowest address in every version", "[unit][caching]") {
    for (const char* spec : {"caching:torch_version=2.12", "caching:torch_version=2.13"}) {
        Playback play(script("a 0 2M; a 1 2M; a 2 2M; a 3 2M; a 4 2M; f 3; f 1; a 5 2M"), policy(spec));
        play.run();
        CHECK(play.placements[5]->address == play.placements[1]->address);
    }
}

TEST_CASE("from 2.13 on the memory fraction is rounded, before it was cut", "[unit][caching]") {
    const auto limit_reached = [](const char* version, Bytes capacity) {
        Playback play(script("a 0 20M"),
            policy(std::string("caching:per_process_memory_fraction=0.5,torch_version=") + version),
            {.limits = {capacity, {}}});
        play.run();
        return play.outcome.ooms == 0;
    };
    const Bytes capacity = 2 * 20 * kMiB - 1;  // half of it: 20 MiB less half a byte
    CHECK_FALSE(limit_reached("2.12", capacity));
    CHECK(limit_reached("2.13", capacity));
}
