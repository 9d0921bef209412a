// PyTorch's memory_summary() of real runs, character by character: the policy replays the recording on a device that
// answers as recorded, its statistics at the end are rendered.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lib/replay/verify.hpp"
#include "lib/report/report.hpp"
#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"
#include "traces/registry.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

// Any policy; leaves its statistics behind when it goes.
class LeavesStats final : public Policy {
public:
    LeavesStats(std::unique_ptr<Policy> policy, AllocatorStats& left) : policy_(std::move(policy)), left_(left) {}
    ~LeavesStats() override { left_ = policy_->stats(); }

    std::optional<Placement> allocate(BufferId b, const Request& r) override { return policy_->allocate(b, r); }
    void free(BufferId b) override { policy_->free(b); }
    void free_requested(BufferId b) override { policy_->free_requested(b); }
    void free_completed(BufferId b) override { policy_->free_completed(b); }
    void record_stream(BufferId b, StreamId s) override { policy_->record_stream(b, s); }
    void empty_cache() override { policy_->empty_cache(); }
    void release_pool(std::uint16_t p) override { policy_->release_pool(p); }
    void empty_pool(std::uint16_t p) override { policy_->empty_pool(p); }
    void synchronize(std::optional<StreamId> s) override { policy_->synchronize(s); }
    bool restore(const MemoryPicture& picture) override { return policy_->restore(picture); }
    const AllocatorStats& stats() const override { return policy_->stats(); }
    Bytes largest_free() const override { return policy_->largest_free(); }
    void free_sizes(std::vector<Bytes>& out) const override { policy_->free_sizes(out); }
    MemoryPicture picture() const override { return policy_->picture(); }

private:
    std::unique_ptr<Policy> policy_;
    AllocatorStats& left_;
};

// None: the replay is not exact, or the recording does not begin with the allocator.
std::optional<std::string> summary_of(const std::string& path) {
    const Recording recording = read_recording(path);
    const Trace& trace = recording.traces.front();
    std::vector<std::string> warnings;
    const PolicySpec spec = policy_from_alloc_conf(
        recording.settings ? recording.settings->alloc_conf : "", warnings, recording.torch_version);
    AllocatorStats stats;
    const VerifyResult verified = verify(trace, [&](Device& device) {
        return std::make_unique<LeavesStats>(spec.info->make(spec.settings(), {device, {}, trace.pools}), stats);
    });
    if (!verified.exact() || trace.completeness != Completeness::complete) return {};
    Result result;
    result.policy = spec.info->name;
    result.torch_settings = spec.info->torch_settings(spec.settings());
    for_each_statistic(stats, [&](const std::string& key, Bytes value) {
        result.metrics.push_back({key, std::int64_t{value}});
    });
    const auto report = std::find_if(
        reports().begin(), reports().end(), [](const ReportInfo& r) { return r.name == "memory-summary"; });
    REQUIRE(report != reports().end());
    return report->render({"", {}, {{&recording, &trace, {result}}}}, {});
}

std::string without_retries(std::string summary) {
    const std::size_t begin = summary.find("cudaMalloc retries: ");
    return summary.erase(begin, summary.find('\n', begin) - begin);
}

}  // namespace

TEST_CASE("bundled recordings end in the summary that PyTorch gave of them", "[differential][memory-summary]") {
    int compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/data/memory_summary")) {
        INFO(entry.path());
        CHECK(summary_of(sample(entry.path().stem())) == read_file(entry.path()));
        ++compared;
    }
    CHECK(compared == 3);
}

TEST_CASE(
    "all exact recordings end in the summary that PyTorch gave of them", "[differential][memory-summary][shared]") {
    const auto folder = shared_file("truth/workloads");
    if (!folder) return;
    int compared = 0, but_for_retries = 0;
    for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
        const std::string path = entry.path();
        if (!path.ends_with(".json.gz")) continue;
        std::string text;
        for_each_line(path, [&](const std::string& line) { text += line + '\n'; });
        const auto recorded = nlohmann::json::parse(text);
        if (!recorded.contains("summary")) continue;
        INFO(entry.path().filename());
        const auto summary = summary_of(path.substr(0, path.size() - 8) + ".pickle.gz");
        if (!summary) continue;
        const std::string expected = recorded["summary"];
        ++compared;
        but_for_retries += *summary != expected;
        CHECK(without_retries(*summary) == without_retries(expected));
    }
    CHECK(compared == 30);
    // Those programs called empty_cache right before they allocated more than ever. That is not recorded and looks
    // like a request which gave everything cached back and tried again.
    CHECK(but_for_retries == 3);
}
