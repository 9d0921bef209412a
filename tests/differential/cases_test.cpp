// Small sequences that people reported about PyTorch's allocator, under ten settings, against what the real one
// answered (tests/data/cases/README.md).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <map>

#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"
#include "traces/registry.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;
using nlohmann::json;

json answer_of(const Result& result) {
    json answer;
    answer["reserved_bytes_end"] = result.count("reserved_bytes.all.current");
    answer["allocated_bytes_end"] = result.count("allocated_bytes.all.current");
    answer["reserved_bytes_peak"] = result.count("reserved_bytes.all.peak");
    answer["allocated_bytes_peak"] = result.count("allocated_bytes.all.peak");
    answer["num_alloc_retries"] = result.count("num_alloc_retries");
    answer["num_device_alloc"] = result.count("num_device_alloc");
    answer["num_device_free"] = result.count("num_device_free");
    answer["oom_at_op"] = result.ooms.empty() ? json() : json(result.ooms.front().op);
    return answer;
}

}  // namespace

TEST_CASE("reported cases get under every setting what the real allocator answered", "[differential][caching]") {
    const std::string folder = source_dir() + "/tests/data/cases/";
    std::ifstream file(folder + "expected.json");
    const json expected = json::parse(file);
    int compared = 0;
    for (const auto& [name, truth] : expected["cases"].items()) {
        const Recording recording = read_recording(folder + name + ".csv");
        RunOptions options;
        if (!truth["capacity_bytes"].is_null()) options.limits.memory_limit = truth["capacity_bytes"].get<Bytes>();
        options.on_oom = OnOom::stop;
        for (const auto& [column, real] : truth["results"].items()) {
            const std::string settings = expected["configurations"][column];
            INFO(name << " under '" << settings << "'");
            std::vector<std::string> warnings;
            CHECK(answer_of(run_policy(
                      recording.traces.front(), policy_from_alloc_conf(settings, warnings), options)) == real);
            ++compared;
        }
    }
    CHECK(compared == 100);
}
