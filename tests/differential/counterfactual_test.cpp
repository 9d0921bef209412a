// Recorded runs under other settings and limits, against what the real PyTorch allocator did with the same ops.
// Addresses are modelled here, so this judges the address model too.
#include <fmt/format.h>

#include <map>

#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"
#include "traces/registry.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

struct Score {
    int runs = 0, exact = 0, same_calls = 0;
};

// `find` gives the file of a recorded workload; none: not at hand, its lines are passed over.
Score compare(const std::string& path, const std::function<std::optional<std::string>(const std::string&)>& find) {
    std::map<std::string, Recording> recordings;
    Score score;
    for_each_counterfactual(path, [&](const Counterfactual& truth) {
        if (!recordings.contains(truth.trace)) {
            const auto file = find(truth.trace);
            if (!file) return;
            recordings.emplace(truth.trace, read_recording(*file));
        }
        const Trace& trace = recordings.at(truth.trace).traces.front();
        std::vector<std::string> warnings;
        RunOptions options;
        options.limits.memory_limit = truth.limit;
        options.frees = Frees::completed;  // the recorded programs freed when the original's free completed
        const Result result = run_policy(trace, policy_from_alloc_conf(truth.alloc_conf, warnings), options);

        ++score.runs;
        INFO(truth.trace << " under '" << truth.alloc_conf << "' within "
                         << (truth.limit ? std::to_string(*truth.limit) : "no limit"));
        std::string differences;
        if (result.outcome.ooms != truth.ooms)
            differences += fmt::format("ooms {} not {}; ", result.outcome.ooms, truth.ooms);
        for (const auto& [key, recorded] : truth.stats)
            if (result.count(key) != recorded)
                differences += fmt::format("{} {} not {}; ", key, result.count(key), recorded);
        CHECK(differences == "");
        score.exact += differences.empty();

        score.same_calls += recorded_calls(result.driver_calls) == truth.calls;
    });
    return score;
}

}  // namespace

TEST_CASE("bundled recordings get under other settings what the real allocator gave them", "[differential][caching]") {
    const Score score = compare(source_dir() + "/tests/data/counterfactual.jsonl.gz", [](const std::string& trace) {
        return std::optional(source_dir() + "/traces/samples/" + trace + ".pickle.gz");
    });
    CHECK(score.runs == 173);
    CHECK(score.same_calls == 173);
}

TEST_CASE(
    "all recorded runs get under other settings what the real allocator gave them", "[differential][caching][shared]") {
    const auto file = shared_file("truth/counterfactual.jsonl.gz");
    if (!file) return;
    const Score score =
        compare(*file, [](const std::string& trace) { return shared_file("truth/workloads/" + trace + ".pickle.gz"); });
    CHECK(score.runs == 243);
    CHECK(score.same_calls == 243);
}
