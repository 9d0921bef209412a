// The fidelity table of policies/README.md: how far every recording is reproduced. Written by
// scripts/approve_golden.sh, held against the code here. Without ../shared only the rows of the bundled samples are.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lib/replay/recorded_address_space.hpp"
#include "lib/replay/verify.hpp"
#include "lib/report/format.hpp"
#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"
#include "tests/support/written_table.hpp"
#include "traces/registry.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

struct Totals {
    std::int64_t recordings = 0, exact = 0, allocs = 0, allocs_exact = 0, calls = 0, calls_exact = 0;
    std::int64_t segments = 0, at_fresh = 0, at_recorded = 0;
};

PolicySpec as_recorded(const Recording& recording) {
    std::vector<std::string> warnings;
    return policy_from_alloc_conf(
        recording.settings ? recording.settings->alloc_conf : "", warnings, recording.torch_version);
}

// How many segments the host model puts where the recording has them, counted from the first one's place.
std::int64_t segments_in_place(const Trace& trace, const PolicySpec& spec, const CudaMallocAddresses& space) {
    RunOptions options;
    options.address_space = &space;
    const Result result = run_policy(trace, spec, options);
    std::vector<Address> modelled, recorded;
    for (const DriverCall& call : result.driver_calls)
        if (call.kind == DriverCallKind::malloc) modelled.push_back(call.address);
    for (const SegmentEvent& event : trace.segment_events)
        if (event.kind == SegmentEventKind::alloc) recorded.push_back(event.address);
    std::int64_t same = 0;
    for (std::size_t i = 0; i < std::min(modelled.size(), recorded.size()); ++i)
        same += modelled[i] - modelled.front() == recorded[i] - recorded.front();
    return same;
}

std::string row(const std::string& name, const std::string& path, Totals& totals) {
    const Recording recording = read_recording(path);
    const PolicySpec spec = as_recorded(recording);
    VerifyResult sum;
    std::string places = "|";
    for (const Trace& trace : recording.traces) {
        if (trace.events.empty()) continue;
        const VerifyResult result = verify(trace, [&](Device& device) {
            return spec.info->make(spec.settings(), {device, {}, trace.pools});
        });
        sum.allocs += result.allocs, sum.allocs_exact += result.allocs_exact;
        sum.segment_events += result.segment_events, sum.segment_events_exact += result.segment_events_exact;
        sum.ooms += result.ooms;
        if (!sum.first_divergence) sum.first_divergence = result.first_divergence;

        const auto segments = std::count_if(trace.segment_events.begin(), trace.segment_events.end(),
            [](const SegmentEvent& e) { return e.kind == SegmentEventKind::alloc; });
        if (segments == 0 || trace.completeness != Completeness::complete || recording.traces.size() > 1) continue;
        const std::int64_t fresh = segments_in_place(trace, spec, fresh_address_space(trace).start);
        const std::int64_t recorded = segments_in_place(trace, spec, read_address_space(trace).start);
        totals.segments += segments, totals.at_fresh += fresh, totals.at_recorded += recorded;
        places = fmt::format("| {} / {} of {}", fresh, recorded, segments);
    }
    const Trace& busiest = *std::max_element(
        recording.traces.begin(), recording.traces.end(), [](const Trace& a, const Trace& b) { return a.ops < b.ops; });
    totals.recordings += 1, totals.exact += sum.exact();
    totals.allocs += sum.allocs, totals.allocs_exact += sum.allocs_exact;
    totals.calls += sum.segment_events, totals.calls_exact += sum.segment_events_exact;
    std::string inferred;
    if (busiest.completeness != Completeness::complete) inferred = "start";
    if (busiest.inferred_pools) inferred += inferred.empty() ? "pools" : ", pools";
    if (busiest.inferred_empty_caches > 0)
        inferred += fmt::format("{}{} empty_cache", inferred.empty() ? "" : ", ", busiest.inferred_empty_caches);
    return fmt::format("| {} | {} | {} of {} | {} of {} | {} | {} {} |\n", name, spec.label(),
        format_count(sum.allocs_exact), format_count(sum.allocs), format_count(sum.segment_events_exact),
        format_count(sum.segment_events), sum.ooms, inferred, places);
}

std::string read_file(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("policies/README.md says of every bundled recording how exact it is", "[differential][fidelity]") {
    const std::string readme = read_file(source_dir() + "/policies/README.md");
    Totals totals;
    int rows = 0;
    for (const auto& file : std::filesystem::directory_iterator(source_dir() + "/traces/samples")) {
        const std::string name = file.path().filename().string();
        if (!name.ends_with(".pickle.gz")) continue;
        const std::string expected =
            row(name.substr(0, name.size() - std::string(".pickle.gz").size()), file.path().string(), totals);
        INFO(expected);
        CHECK(readme.find(expected) != std::string::npos);
        ++rows;
    }
    CHECK(rows >= 5);
    CHECK(totals.exact == totals.recordings);
}

TEST_CASE(
    "the fidelity table of policies/README.md is what the code does", "[differential][fidelity][written][shared]") {
    const auto folder = shared_file("truth/workloads");
    if (!folder) return;
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(*folder))
        if (file.path().string().ends_with(".pickle.gz")) files.push_back(file.path());
    std::sort(files.begin(), files.end());

    Totals totals;
    std::string table =
        "| recording | replayed under | allocations at their address | driver calls as recorded | out of memory | "
        "inferred | segments in place, fresh / recorded address space |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (const auto& file : files) {
        const std::string name = file.filename().string();
        table += row(name.substr(0, name.size() - std::string(".pickle.gz").size()), file.string(), totals);
    }
    table += fmt::format("| **all {}: {} exact** | | **{} of {}** | **{} of {}** | | | **{} / {} of {}** |\n",
        totals.recordings, totals.exact, format_count(totals.allocs_exact), format_count(totals.allocs),
        format_count(totals.calls_exact), format_count(totals.calls), totals.at_fresh, totals.at_recorded,
        totals.segments);

    check_written_table("policies/README.md", "fidelity", table);
}
