// Every policy beside PyTorch's against its slow reference (tests/support/reference_policies.hpp): random programs, the
// same places, bytes set aside and bytes reserved after every op, the same failures. What disagrees is shrunk and shown
// as a trace to paste.
#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "tests/support/catch.hpp"
#include "tests/support/reference_program.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

struct Family {
    std::string policy;
    std::vector<std::string> parameters;  // each program runs under one of these
    std::vector<Bytes> sizes;             // see ProgramShape
    std::vector<Bytes> capacities;        // 0: no bound
    int streams = 1;
    bool synchronizes = false, empties = false, records = false;
};

void check_family(const Family& family, int programs) {
    const char* set = std::getenv("FRAGSIM_SEED");
    const unsigned seed = set ? static_cast<unsigned>(std::stoul(set)) : 1;
    int ooms = 0;
    std::map<std::string, std::string> disagreements;  // by the policy's parameters, the shortest of each
    for (int i = 0; i < programs; ++i) {
        std::mt19937 random(seed * 1000003 + static_cast<unsigned>(i));
        const auto one_of = [&](const auto& choices) { return choices[random() % choices.size()]; };
        const std::string parameters = one_of(family.parameters);
        const std::string spec = family.policy + (parameters.empty() ? "" : ":") + parameters;
        const Bytes bound = one_of(family.capacities);
        const std::optional<Bytes> capacity = bound > 0 ? std::optional(bound) : std::nullopt;
        ProgramShape shape;
        // Programs of few sizes fill holes exactly, programs of many do not.
        for (std::size_t n = 1 + random() % family.sizes.size(); n > 0; --n)
            shape.sizes.push_back(one_of(family.sizes));
        shape.streams = 1 + static_cast<int>(random() % static_cast<unsigned>(family.streams));
        shape.waits = random() % 3 == 0;
        shape.synchronizes = family.synchronizes && random() % 2 == 0;
        shape.empties = family.empties && random() % 2 == 0;
        shape.records = family.records;
        const ReferenceProgram program = random_program(random, shape, 20 + static_cast<int>(random() % 120));
        const Bytes card = capacity.value_or(kGiB);  // as the host device has it
        for (const std::string& line : run_policy_on(program, spec, capacity, card))
            ooms += line.starts_with("out of memory");
        const std::string found = disagreement(program, spec, capacity, card);
        std::string& shortest = disagreements[spec];
        if (!found.empty() && (shortest.empty() || found.size() < shortest.size()))
            shortest = fmt::format("seed {}, program {}\n{}", seed, i, found);
    }
    for (const auto& [spec, found] : disagreements) {
        INFO(found);
        CHECK(found.empty());
    }
    CHECK(ooms > 0);  // failures are compared, too
}

const std::vector<Bytes> kSmallSizes{512, 1536, 4096, 20'000, 70'000};
const std::vector<Bytes> kSizes{300, 40'000, kMiB, 3 * kMiB, 7 * kMiB, 21 * kMiB};

std::vector<std::string> growths(const std::string& more) {
    return {"arena_bytes=131072,growth=none" + more, "arena_bytes=131072,align_bytes=1024,growth=none" + more,
        "arena_bytes=131072,min_split_bytes=8192,growth=none" + more, "growth=segment,segment_bytes=65536" + more,
        "growth=segment,segment_bytes=131072,min_split_bytes=4096" + more, "arena_bytes=4194304" + more,
        "arena_bytes=8388608,min_split_bytes=4096" + more};
}

Family fit(const std::string& policy, const std::string& more = "") {
    return {policy, growths(more), kSmallSizes, {0, 2 * kMiB, 6 * kMiB}, 3, true, true};
}

}  // namespace

TEST_CASE("best fit does what its reference does", "[property][best-fit]") { check_family(fit("best-fit"), 400); }
TEST_CASE("first fit does what its reference does", "[property][first-fit]") { check_family(fit("first-fit"), 400); }
TEST_CASE("next fit does what its reference does", "[property][next-fit]") { check_family(fit("next-fit"), 400); }
TEST_CASE("worst fit does what its reference does", "[property][worst-fit]") { check_family(fit("worst-fit"), 400); }

TEST_CASE("the fits do what their references do with arenas of many pages", "[property][best-fit]") {
    for (const char* policy : {"best-fit", "first-fit", "next-fit", "worst-fit", "tlsf"})
        check_family({policy, {"", "growth=none", "growth=segment", "arena_bytes=67108864", "min_split_bytes=1048576"},
                         kSizes, {40 * kMiB, 64 * kMiB}, 3, true, true},
            100);
}

TEST_CASE("TLSF does what its reference does", "[property][tlsf]") {
    check_family(fit("tlsf"), 400);
    check_family(fit("tlsf", ",sl_log2=2"), 200);
    check_family(fit("tlsf", ",exact_class_scan=true"), 200);
}

TEST_CASE("without a policy, every allocation is a call of the device", "[property][direct]") {
    check_family({"direct", {""}, kSizes, {10 * kMiB, 64 * kMiB}, 3, true, true}, 100);
}

TEST_CASE("the buddy does what its reference does", "[property][buddy]") {
    const std::vector<Bytes> sizes{512, 700, 1024, 5000, 16'384, 70'000, 140'000};
    const std::vector<Bytes> capacities{0, 2 * kMiB, 6 * kMiB};
    const std::string arena = "arena_bytes=131072";
    check_family({"buddy",
                     {arena, arena + ",max_arenas=2", arena + ",max_arenas=3,huge_direct=false",
                         arena + ",min_block_bytes=4096"},
                     sizes, capacities, 3, true, true},
        400);
    check_family({"buddy", {arena + ",arena_doubling=true", arena + ",arena_doubling=true,max_arenas=3"}, sizes,
                     capacities, 3, true, true},
        200);
    check_family({"buddy", {arena + ",tail_trim=true", arena + ",tail_trim=true,max_arenas=2"}, sizes, capacities, 1,
                     false, true},
        200);
    check_family(
        {"buddy", {arena + ",lazy=svr4", arena + ",lazy=svr4,max_arenas=1"}, sizes, capacities, 3, true, true}, 400);
    check_family({"buddy", {arena + ",release_empty=true", arena + ",release_empty=true,max_arenas=2"}, sizes,
                     capacities, 3, true, true},
        200);
    check_family({"buddy", {"", "arena_bytes=33554432"}, kSizes, {24 * kMiB, 64 * kMiB}, 3, true, true}, 100);
}

TEST_CASE("RMM's pool does what its reference does", "[property][rmm-pool]") {
    check_family({"rmm-pool", {"", "initial_pool_bytes=1048576", "initial_pool_bytes=65536,maximum_pool_bytes=262144",
                         "initial_pool_bytes=65536,first_stream_is_default=true"},
                     kSmallSizes, {0, 2 * kMiB, 6 * kMiB}, 3, true, true},
        400);
    check_family({"rmm-pool", {"", "initial_pool_bytes=2097152,maximum_pool_bytes=33554432"}, kSizes,
                     {40 * kMiB, 64 * kMiB}, 3, true, true},
        200);
}

TEST_CASE("RMM's pool gives back under a maximum what its reference gives back", "[property][rmm-pool]") {
    check_family({"rmm-pool",
                     {"maximum_pool_bytes=262144", "initial_pool_bytes=32768,maximum_pool_bytes=196608",
                         "initial_pool_bytes=4096,maximum_pool_bytes=131072"},
                     {40'000, 70'000, 100'000, 130'000}, {0}, 3, true, true},
        300);
}

TEST_CASE("RMM's arena does what its reference does", "[property][rmm-arena]") {
    check_family({"rmm-arena", {"arena_bytes=16777216", "arena_bytes=8388608", ""},
                     {200, 5000, 300'000, kMiB, kMiB + 256, 3 * kMiB}, {0, 32 * kMiB}, 3, true, true},
        500);
}

TEST_CASE("RMM's bins do what their reference does", "[property][rmm-binning]") {
    check_family(
        {"rmm-binning",
            {"blocks_per_chunk=2", "min_size_exponent=16,max_size_exponent=18,blocks_per_chunk=4",
                "blocks_per_chunk=3,initial_pool_bytes=4194304", "blocks_per_chunk=2,first_stream_is_default=true",
                "min_size_exponent=17,max_size_exponent=17,blocks_per_chunk=2,maximum_pool_bytes=16777216"},
            {100, 70'000, 140'000, 262'144, 500'000, 4 * kMiB, 5 * kMiB}, {0, 32 * kMiB, 64 * kMiB}, 3, true, true},
        300);
}

TEST_CASE("CuPy's pool does what its reference does", "[property][cupy-pool]") {
    check_family({"cupy-pool", {"size=262144", "size=131072", "size=600000"}, kSmallSizes, {0}, 3, true, true}, 300);
    check_family(
        {"cupy-pool", {"", "size=50331648", "fraction=0.5"}, kSizes, {40 * kMiB, 64 * kMiB}, 3, true, true}, 200);
}

TEST_CASE("BFC does what its reference does", "[property][bfc]") {
    check_family({"bfc",
                     {"", "memory_limit_bytes=67108864", "memory_limit_bytes=67108864,garbage_collection=false",
                         "max_internal_fragmentation_bytes=1048576", "allow_growth=false", "memory_fraction=0.5",
                         "backpedal_once=true", "memory_limit_bytes=268435456",
                         "memory_limit_bytes=268435456,backpedal_once=true", "suballocator=cuda_malloc",
                         "suballocator=cuda_malloc,memory_limit_bytes=67108864",
                         "suballocator=cuda_malloc,memory_limit_bytes=268435456,backpedal_once=true",
                         "memory_limit_bytes=33554433", "memory_fraction=0.3"},
                     kSizes, {40 * kMiB, 64 * kMiB, 100 * kMiB}, 3, true, true},
        500);
}

TEST_CASE("the virtual memory pool does what its reference does", "[property][vmm-pool]") {
    // Addresses enough: the reference reserves more of them when none fits, the policy does not.
    check_family({"vmm-pool",
                     {"va_factor=64", "va_factor=64,block_bytes=2097152", "va_factor=64,block_bytes=4194304",
                         "va_factor=64,block_bytes=8388608,remap=off",
                         "va_factor=64,block_bytes=4194304,remap=release_then_create",
                         "va_factor=64,block_bytes=4194304,trim=on_empty_cache", "va_factor=64,align_min_bytes=4096"},
                     kSizes, {0, 40 * kMiB, 64 * kMiB, 128 * kMiB}, 3, true, true},
        500);
}

TEST_CASE("stitching does what its reference does", "[property][stitching]") {
    check_family({"stitching",
                     {"", "frag_limit_bytes=6291456", "stitch_limit=2", "stitch_limit=0", "chunk_bytes=4194304",
                         "defrag_level=1", "small_limit_bytes=2097152"},
                     kSizes, {0, 40 * kMiB, 64 * kMiB}, 3, false, true},
        500);
}

TEST_CASE("stitching as released does what its reference does", "[property][stitching]") {
    const std::string released = "variant=released";
    check_family({"stitching",
                     {released, released + ",frag_limit_bytes=2097152", released + ",frag_limit_bytes=8388608",
                         released + ",frag_limit_bytes=2097152,reuse_limit=2",
                         released + ",frag_limit_bytes=2097152,defrag_level=1",
                         released + ",frag_limit_bytes=2097152,defrag_level=2"},
                     kSizes, {0, 64 * kMiB, 100 * kMiB}, 3, false, true},
        500);
}

TEST_CASE("the async pool does what its reference does", "[property][async-pool]") {
    std::vector<std::string> parameters;
    for (const char* progress : {"gpu_progress=idle", "gpu_progress=never"})
        for (const char* threshold : {"", ",release_threshold_bytes=104857600", ",release_threshold_bytes=1073741824"})
            for (const char* flags : {"", ",reuse_allow_opportunistic=false",
                     ",reuse_allow_internal_dependencies=false", ",max_size_bytes=104857600"})
                parameters.push_back(std::string(progress) + threshold + flags);
    const std::vector<Bytes> sizes{1000, kMiB, 6 * kMiB, 20 * kMiB, 32 * kMiB, 70 * kMiB};
    check_family({"async-pool", parameters, sizes, {0, 128 * kMiB, 320 * kMiB}, 3, true, true}, 1000);
}

TEST_CASE("PyTorch's asynchronous backend does what its reference does", "[property][torch-async]") {
    std::vector<std::string> parameters;
    for (const char* progress : {"gpu_progress=idle", "gpu_progress=never"})
        for (const char* more :
            {"", ",trim_retry=true", ",reuse_allow_opportunistic=false", ",reuse_allow_internal_dependencies=false"})
            parameters.push_back(std::string(progress) + more);
    const std::vector<Bytes> sizes{1000, kMiB, 6 * kMiB, 20 * kMiB, 32 * kMiB, 70 * kMiB};
    check_family({"torch-async", parameters, sizes, {0, 128 * kMiB, 320 * kMiB}, 3, true, true, true}, 600);
}
