// One real run predicts another: the recording of a training without a memory limit, replayed under the limits and
// settings of other recorded runs of the same training, makes their driver calls.
#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"
#include "traces/registry.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

constexpr double kCard = 150'109'880'320;  // bytes of the card that the fractions were taken of

std::vector<RecordedCall> predicted_calls(const std::string& path, const std::string& alloc_conf, double fraction) {
    const Recording recording = read_recording(path);
    std::vector<std::string> warnings;
    RunOptions options;
    if (fraction < 1) options.limits.memory_limit = static_cast<Bytes>(fraction * kCard);
    return recorded_calls(
        run_policy(recording.traces.front(), policy_from_alloc_conf(alloc_conf, warnings), options).driver_calls);
}

}  // namespace

TEST_CASE("a run recorded without a limit predicts the driver calls of real runs with one", "[differential][shared]") {
    struct Run {
        std::string tag, alloc_conf;
        double fraction;
    };
    const std::vector<Run> runs{{"free", "", 1}, {"f75", "", 0.075}, {"f80", "", 0.08}, {"f85", "", 0.085},
        {"s128f80", "max_split_size_mb:128", 0.08}};
    for (const Run& from : runs)
        for (const Run& to : runs) {
            const auto source = shared_file("truth/workloads/vit_multires." + from.tag + ".pickle.gz");
            const auto target = shared_file("truth/workloads/vit_multires." + to.tag + ".pickle.gz");
            if (!source || !target) return;
            INFO(from.tag << " predicts " << to.tag);
            const std::vector<RecordedCall> recorded =
                recorded_calls(read_recording(*target).traces.front().segment_events);
            CHECK(recorded.size() > 500);
            CHECK(predicted_calls(*source, to.alloc_conf, to.fraction) == recorded);
        }
}
