// Generated programs that ran through the real PyTorch 2.11 allocator: the same driver calls in kind, size and order,
// out of memory at the same ops, and equal statistics.
#include <fmt/format.h>

#include "lib/device/host_device.hpp"
#include "lib/metrics/catalog.hpp"
#include "lib/replay/auditor.hpp"
#include "lib/replay/replay.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

class OomOps final : public ReplayObserver {
public:
    void observe(const Step& step) override {
        if (step.kind == EventKind::alloc && !step.placement) ops.push_back(step.op);
    }
    std::vector<std::uint32_t> ops;
};

// Address space at process start is not recorded; programs that were driven with extra streams found less of it free.
bool same_calls(const Program& program, CudaMallocAddresses::Start start) {
    std::vector<std::string> warnings;
    const PolicySpec spec = policy_from_alloc_conf(program.alloc_conf, warnings);
    HostDevice host({std::nullopt, CudaMallocAddresses(start)});
    LoggedDevice device(host, CostModel::h200());
    const auto policy = spec.info->make(spec.given, {device, {{}, program.limit}, {}});
    OomOps ooms;
    Auditor auditor(program.trace, *policy, device, program.limit);
    ReplayObserver* observers[] = {&ooms, &auditor};
    replay(program.trace, *policy, device, observers);
    auditor.finish();

    if (recorded_calls(device.calls()) != program.calls) return false;

    INFO(program.name);
    CHECK(auditor.findings().empty());
    CHECK(ooms.ops == program.oom_ops);
    std::size_t compared = 0;
    for_each_statistic(policy->stats(), [&](const std::string& key, Bytes value) {
        for (const auto& [recorded_key, recorded] : program.stats)
            if (recorded_key == key) {
                INFO(key);
                CHECK(value == recorded);
                ++compared;
            }
    });
    CHECK(compared > 100);
    return true;
}

int compare_all(const std::string& path) {
    int programs = 0;
    for_each_program(path, [&](const Program& program) {
        ++programs;
        const bool same = same_calls(program, CudaMallocAddresses::Start::extra_streams) ||
                          same_calls(program, CudaMallocAddresses::Start::fresh);
        INFO(program.name << " under '" << program.alloc_conf << "'");
        CHECK(same);
    });
    return programs;
}

}  // namespace

TEST_CASE("generated programs get what the real allocator gave them", "[differential][caching]") {
    CHECK(compare_all(source_dir() + "/tests/data/programs.jsonl.gz") == 14);
}

TEST_CASE("all generated programs get what the real allocator gave them", "[differential][caching][shared]") {
    if (const auto file = shared_file("truth/programs.jsonl.gz")) CHECK(compare_all(*file) == 140);
}
