// The smallest card and the smallest memory limit against brute force, and against which runs the real allocator got through.
#include <algorithm>
#include <map>

#include "lib/study/min_capacity.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/small_programs.hpp"
#include "tests/support/truth.hpp"
#include "traces/registry.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

constexpr Bytes kUnit = 2 * kMiB;

// Within `bytes`: a memory limit where the options have one, else a card.
bool survives(const Trace& trace, const PolicySpec& spec, RunOptions options, Bytes bytes) {
    (options.limits.memory_limit ? options.limits.memory_limit : options.limits.capacity) = bytes;
    return try_policy(trace, spec, options).survives();
}

RunOptions by_memory_limit(RunOptions options = {}) {
    options.limits.memory_limit = kUnit;  // any: its value is searched
    return options;
}

}  // namespace

TEST_CASE("the smallest card or memory limit is the one that trying every one of them finds", "[differential][min-capacity]") {
    constexpr MinCapacitySearch kEverything{.probes_above = 16, .probes_next = 4, .replays_below = 1e9};
    int not_monotone = 0, compared = 0;
    struct Searched {
        const char* policy;
        RunOptions options = {};
    };
    for (const auto& [policy, options] : {Searched{"caching"}, Searched{"split-capped:max_split_size_mb=24"},
             Searched{"expandable"}, Searched{"async-pool"}, Searched{"bfc"}, Searched{"rmm-pool"},
             Searched{"best-fit"}, Searched{"caching", by_memory_limit()}, Searched{"expandable", by_memory_limit()},
             Searched{"caching:garbage_collection_threshold=0.6", by_memory_limit()}}) {
        const PolicySpec spec = parse_policy_spec(policy, policies());
        for (std::uint32_t seed = 1; seed <= 12; ++seed) {
            const Trace trace = small_program(seed, 1 + seed % 2);
            const auto found = find_min_capacity(trace, spec, options, kEverything);
            INFO(policy << (options.limits.memory_limit ? " within a memory limit" : "") << ", seed " << seed);
            REQUIRE(found);
            CHECK(found->memory_limit == options.limits.memory_limit.has_value());
            Bytes smallest = 0;
            while (!survives(trace, spec, options, smallest + kUnit)) smallest += kUnit;
            smallest += kUnit;
            CHECK(found->bytes == smallest);
            CHECK(found->excluded_from == 0);
            if (!found->monotone()) {
                ++not_monotone;
                CHECK(found->highest_failing > found->bytes);
                CHECK_FALSE(survives(trace, spec, options, found->highest_failing));
            }
            ++compared;
        }
    }
    CHECK(compared == 120);
    CHECK(not_monotone > 0);  // else the test would not show that such cases are told
}

TEST_CASE("within its price the search says how far down it has looked", "[differential][min-capacity]") {
    const PolicySpec spec = parse_policy_spec("caching", policies());
    const Trace trace = small_program(3);
    const auto found = find_min_capacity(trace, spec, {}, {.probes_above = 0, .probes_next = 0, .replays_below = 0.5});
    REQUIRE(found);
    CHECK(survives(trace, spec, {}, found->bytes));
    REQUIRE(found->excluded_from > 0);
    for (Bytes capacity = found->excluded_from; capacity < found->bytes; capacity += kUnit)
        CHECK_FALSE(survives(trace, spec, {}, capacity));
}

TEST_CASE("what is live at once bounds the smallest card from below", "[differential][min-capacity]") {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        const Trace trace = small_program(seed);
        const Bytes least = least_capacity(trace);
        for (const char* policy : {"direct", "planner"})
            CHECK_FALSE(survives(trace, parse_policy_spec(policy, policies()), {}, least - 1));
    }
}

namespace {

// Every line of the truth with a limit: does the search agree on who gets through?
void check_truth(const std::string& path, const std::function<std::optional<std::string>(const std::string&)>& find,
    int least_lines) {
    std::map<std::string, Recording> recordings;
    std::map<std::string, std::optional<MinCapacity>> searched;
    int lines = 0, survivors = 0;
    for_each_counterfactual(path, [&](const Counterfactual& truth) {
        if (!truth.limit) return;
        if (!recordings.contains(truth.trace)) {
            const auto file = find(truth.trace);
            if (!file) return;
            recordings.emplace(truth.trace, read_recording(*file));
        }
        const Trace& trace = recordings.at(truth.trace).traces.front();
        if (!trace.ooms.empty()) return;  // the truth leaves out what the recorded run did not get
        std::vector<std::string> warnings;
        const PolicySpec spec = policy_from_alloc_conf(truth.alloc_conf, warnings);
        RunOptions options = by_memory_limit();
        options.frees = Frees::completed;
        auto& found = searched.try_emplace(truth.trace + ' ' + truth.alloc_conf).first->second;
        if (!found)
            found = find_min_capacity(trace, spec, options, {.probes_above = 4, .probes_next = 4, .replays_below = 1});
        INFO(truth.trace << " under '" << truth.alloc_conf << "' within " << *truth.limit);
        REQUIRE(found);
        if (truth.ooms == 0)
            CHECK(found->bytes <= round_up(*truth.limit, kUnit));
        else  // it fails, or more memory is worse there
            CHECK((found->bytes > *truth.limit || !survives(trace, spec, options, *truth.limit)));
        CHECK(survives(trace, spec, options, *truth.limit) == (truth.ooms == 0));
        survivors += truth.ooms == 0;
        ++lines;
    });
    CHECK(lines >= least_lines);
    CHECK(survivors > 0);
    CHECK(survivors < lines);
}

}  // namespace

TEST_CASE(
    "bundled recordings: the smallest card agrees with who survives on a real one", "[differential][min-capacity]") {
    check_truth(
        source_dir() + "/tests/data/counterfactual.jsonl.gz",
        [](const std::string& trace) {
            return std::optional(source_dir() + "/traces/samples/" + trace + ".pickle.gz");
        },
        4);
}

TEST_CASE("all recordings: the smallest card agrees with who survives on a real one",
    "[differential][min-capacity][shared]") {
    const auto path = shared_file("truth/counterfactual.jsonl.gz");
    if (!path) return;
    check_truth(
        *path, [](const std::string& trace) { return shared_file("truth/workloads/" + trace + ".pickle.gz"); }, 50);
}

TEST_CASE("what a recording begins with has to fit, too", "[differential][min-capacity]") {
    const Recording recording = read_recording(source_dir() + "/traces/samples/gpt2_varlen.ring.pickle.gz");
    const Trace& trace = recording.traces.front();
    Bytes live = 0, reserved = 0;
    for (const BlockPicture& block : trace.initial.blocks)
        if (block.state == BlockState::active_allocated) live += block.requested;
    for (const SegmentPicture& segment : trace.initial.segments) reserved += segment.size;
    REQUIRE(live > kGiB);
    REQUIRE(reserved > live + kGiB);
    for (const char* policy : {"caching", "torch-async", "bfc", "best-fit"}) {
        const PolicySpec spec = parse_policy_spec(policy, policies());
        RunOptions options;
        options.limits.capacity = live / 2;
        INFO(policy);
        CHECK_FALSE(try_policy(trace, spec, options).survives());
        CHECK_FALSE(run_policy(trace, spec, options).survives());
        // More than a card holds is not taken over.
        options.limits.capacity = reserved - kGiB;
        CHECK(try_policy(trace, spec, options).reserved_peak <= *options.limits.capacity);
    }
}
