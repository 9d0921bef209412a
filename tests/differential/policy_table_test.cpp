// Every policy on every bundled workload: the bounds that must hold, and the tables of policies/README.md.
#include <fmt/format.h>

#include "lib/core/sizes.hpp"
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

// One recording of each program; the others were made by the same programs under other settings.
const char* const kWorkloads[] = {"gpt2_varlen.default", "vit_multires.f70", "detection.default",
    "unet_multires.default", "oom.default", "streams.default"};

std::vector<PolicySpec> all_policies() {
    std::vector<PolicySpec> specs;
    for (const PolicyInfo& info : policies()) {
        specs.push_back({&info, {}});
        for (const std::string_view key : info.required) specs.back().given.emplace_back(key, "128");
        if (info.other_bound.first.empty()) continue;
        specs.push_back(specs.back());
        specs.back().given.emplace_back(info.other_bound);
    }
    return specs;
}

Trace load(const std::string& workload) {
    Recording recording = read_recording(source_dir() + "/traces/samples/" + workload + ".pickle.gz");
    return std::move(recording.traces.front());
}

// Live bytes at their peak, without any rounding: no allocator can reserve less.
Bytes load_of(const Trace& trace) {
    Bytes live = 0, peak = 0;
    for (const Event event : trace.events) {
        const EventKind kind = event.kind();
        if (kind == EventKind::alloc) live += trace.buffers[event.subject].requested;
        if (kind == EventKind::free || kind == EventKind::free_completed)
            live -= trace.buffers[event.subject].requested;
        peak = std::max(peak, live);
    }
    return peak;
}

std::string row(const PolicySpec& spec, const Result& result) {
    const auto real = [&](const char* key) { return format_ratio(result.real(key)); };
    return fmt::format("| `{}`{} | {} | {} | {} | {} | {} | {} |\n", spec.label(), spec.info->remaps ? " *" : "",
        format_size(result.count("reserved_bytes.all.peak")), real("overhead_over_load"),
        real("internal_fragmentation.at_peak"), real("external_fragmentation.at_peak"),
        format_count(result.count("num_driver_calls")), format_duration(result.real("driver_time_ns")));
}

}  // namespace

TEST_CASE("no policy reserves less than what lives, and none with contiguous ranges less than the planner",
    "[differential][policy]") {
    for (const char* workload : kWorkloads) {
        CAPTURE(workload);
        const Trace trace = load(workload);
        const Bytes load = load_of(trace);
        std::vector<std::pair<PolicySpec, Bytes>> reserved;
        for (const PolicySpec& spec : all_policies()) {
            const Result result = run_policy(trace, spec, {});
            CHECK(result.outcome.ooms == 0);
            reserved.emplace_back(spec, result.count("reserved_bytes.all.peak"));
        }
        const auto planner = std::find_if(reserved.begin(), reserved.end(),
            [](const auto& entry) { return entry.first.info->name == std::string_view("planner"); });
        REQUIRE(planner != reserved.end());
        for (const auto& [spec, bytes] : reserved) {
            INFO(spec.label());
            CHECK(bytes >= load);
            if (!spec.info->remaps) CHECK(bytes >= planner->second);
        }
    }
}

TEST_CASE("the tables of policies/README.md are what the code does", "[differential][policy][written]") {
    std::string text;
    for (const char* workload : kWorkloads) {
        const Trace trace = load(workload);
        text += fmt::format(
            "\n**{}**, {} ops, at least {} live\n\n", workload, format_count(trace.ops), format_size(load_of(trace)));
        text +=
            "| policy | peak reserved | over its load | internal fragmentation | external fragmentation | driver calls "
            "| modelled driver time |\n| --- | --- | --- | --- | --- | --- | --- |\n";
        for (const PolicySpec& spec : all_policies()) text += row(spec, run_policy(trace, spec, {}));
    }
    check_written_table("policies/README.md", "policies and workloads", text + "\n");
}
