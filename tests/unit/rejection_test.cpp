// Failed requests as PyTorch's own records have them: the size it writes, and a rejection, of which it writes nothing.
#include <algorithm>

#include "lib/report/report.hpp"
#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/script.hpp"
#include "traces/registry.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

struct Replayed {
    Recording recording;
    Result result;

    std::string report(const char* name) const {
        ResultSet set{"", {}, {}};
        set.traces.push_back({&recording, &recording.traces.front(), {result}, {}});
        for (const ReportInfo& info : reports())
            if (info.name == name) return info.render(set, {});
        return "";
    }
    // The snapshot that PyTorch would have written, read again.
    Trace snapshot() const {
        TempFolder folder;
        write_file(folder / "would.pickle", report("torch-snapshot"));
        return read_recording(folder / "would.pickle").traces.front();
    }
};

Replayed replayed(const char* text, const char* conf, Bytes capacity) {
    Replayed out;
    out.recording.path = "run";
    out.recording.traces.push_back(script(text));
    std::vector<std::string> warnings;
    RunOptions options;
    options.limits.capacity = capacity;
    options.record_history = true;
    out.result = run_policy(out.recording.traces.front(), policy_from_alloc_conf(conf, warnings), options);
    return out;
}

std::int64_t entries(const Result& result, HistoryAction action) {
    return std::count_if(result.history.begin(), result.history.end(),
        [&](const HistoryEntry& entry) { return entry.action == action; });
}

}  // namespace

TEST_CASE("a failed request is written as the policy rounds it", "[unit][rejection]") {
    const Replayed run = replayed("a 0 30M; a 1 35094528", "roundup_power2_divisions:4", 64 * kMiB);
    REQUIRE(run.result.ooms.size() == 1);
    CHECK(run.result.ooms.front().rounded == 40 * kMiB);
    const Trace snapshot = run.snapshot();
    REQUIRE(snapshot.ooms.size() == 1);
    CHECK(snapshot.ooms.front().requested == 40 * kMiB);
    CHECK(snapshot.ooms.front().device_free == 32 * kMiB);  // then, whatever came later
    // Below 10 MiB a segment of 20 MiB is asked for, and the block's size is written.
    CHECK(replayed("a 0 30M; a 1 5M+1", "", 40 * kMiB).snapshot().ooms.front().requested == 5 * kMiB + 512);
}

TEST_CASE("a rejection is counted as a failure and leaves no entry", "[unit][rejection]") {
    const Replayed run = replayed("a 0 30M; f 0; a 1 40M; a 2 41M; a 3 10M", "throw_on_cudamalloc_oom:True", 64 * kMiB);
    CHECK(run.result.outcome.ooms == 2);
    CHECK(run.result.count("num_ooms") == 0);
    CHECK(run.result.count("num_oom_rejections") == 2);
    REQUIRE(run.result.ooms.size() == 2);
    CHECK(run.result.ooms.front().cause == OomCause::rejected);
    CHECK(entries(run.result, HistoryAction::rejection) == 2);
    CHECK(entries(run.result, HistoryAction::oom) == 0);
    CHECK(run.snapshot().ooms.empty());
    const std::string detail = run.report("detail");
    INFO(detail);
    CHECK(detail.find("requests that failed                                     2\n") != std::string::npos);
    CHECK(detail.find("  of them rejected before a retry                        2\n") != std::string::npos);
    CHECK(detail.find("cause: rejected") != std::string::npos);
    CHECK(run.report("table").find("no, 2 OOM") != std::string::npos);
    CHECK(run.report("perfetto").find("\"cause\":\"rejected\"") != std::string::npos);
}

TEST_CASE("what no allocator could serve is no mere rejection", "[unit][rejection]") {
    const Replayed run = replayed("a 0 30M; a 1 40M", "throw_on_cudamalloc_oom:True", 64 * kMiB);
    CHECK(run.result.ooms.front().cause == OomCause::capacity);
}
