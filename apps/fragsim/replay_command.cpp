#include "apps/fragsim/replay_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/fragsim/compare_stored.hpp"
#include "apps/fragsim/cost_profile.hpp"
#include "apps/fragsim/output_file.hpp"
#include "apps/fragsim/report_outputs.hpp"
#include "lib/core/error.hpp"
#include "lib/replay/recorded_address_space.hpp"

namespace fragsim {
namespace {

struct Options {
    ReplayChoice replay;
    PolicyChoice policy;
    std::string driver_log, timeline;
    std::uint32_t timeline_every = 1;
    bool both_bounds = false;  // show what a policy cannot know at both ends
    bool stored = false;       // takes stored results, too
    bool fail_on_regression = false;
};

void write_driver_log(OutputFile& file, const Result& result) {
    file.write("op,call,bytes,address,stream\n");
    for (const DriverCall& call : result.driver_calls)
        file.write(
            fmt::format("{},{},{},{:#x},{}\n", call.op, name(call.kind), call.bytes, call.address, call.stream.value));
}

// Rows for the other end of what a policy assumes (PolicyInfo::other_bound), where it makes a difference.
class BoundRows {
public:
    // `row`: the index of `other` in its trace's results.
    void note(std::size_t row, const Result& assumed, const Result& other) {
        if (row >= differs_.size()) differs_.resize(row + 1);
        for (const char* key : {"reserved_bytes.all.peak", "num_ooms"})
            if (assumed.count(key) != other.count(key)) differs_[row] = 2;
        if (differs_[row] == 0) differs_[row] = 1;
    }
    // Takes away the rows that are the same in every trace.
    void thin_out(ResultSet& set) const {
        for (std::size_t row = differs_.size(); row-- > 0;)
            if (differs_[row] == 1)
                for (TraceResults& trace : set.traces)
                    trace.results.erase(trace.results.begin() + static_cast<std::ptrdiff_t>(row));
    }

private:
    std::vector<char> differs_;  // by row: 0 no such row, 1 the same so far, 2 not
};

Result run_on(const DeviceChoice& device, const Trace& trace, const PolicySpec& spec, RunOptions options) {
    const bool cuda = device.kind == DeviceChoice::Kind::cuda;
    options.device = device;
    if (!cuda) options.touch = TouchMode::none;
    if (cuda && options.repetitions == 0) options.repetitions = 3;
    return run_policy(trace, spec, options);
}

void print_notes(const Result& result, const Invocation& invocation) {
    if (!invocation.quiet)
        for (const std::string& advice : result.advice) print_diagnostic("note", result.label + ": " + advice);
    for (const AuditFinding& finding : result.audit_findings)
        print_diagnostic(
            "audit", fmt::format("{}: op {}: {}: {}", result.label, finding.op, name(finding.rule), finding.what));
    if (result.spoilt_words > 0)
        print_diagnostic(
            "touch", fmt::format("{}: {} words did not hold what was written", result.label, result.spoilt_words));
}

// The options given that say what to replay and how.
std::vector<std::string> given_for_replaying(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
        if (option->count() > 0 && (option->get_group() == "Replay" || option->get_group() == "Policies"))
            names.push_back(option->get_name());
    return names;
}

int run(const Options& options, const CLI::App& command, const Invocation& invocation) {
    options.policy.check();
    if (options.stored)
        if (const auto status =
                compare_stored(options.replay, given_for_replaying(command), options.fail_on_regression, invocation))
            return *status;
    RunOptions run_options = options.replay.run_options();
    const std::vector<DeviceChoice> devices = options.replay.device_choices();
    run_options.record_placements = devices.size() > 1;
    std::optional<CostModel> costs;
    if (!options.replay.cost_profile.empty())
        run_options.costs = &costs.emplace(read_cost_profile(options.replay.cost_profile));
    ReportOutputs reports(options.replay.reports, options.replay.json,
        devices.size() > 1 ? "agreement" : options.replay.default_report, invocation.force);
    const auto any = [&](auto holds) { return std::any_of(reports.infos().begin(), reports.infos().end(), holds); };
    run_options.record_history = any([](const ReportInfo* report) { return report->needs.history; });
    run_options.record_series = any([](const ReportInfo* report) { return report->needs.series; });
    const bool hash = any([](const ReportInfo* report) { return report->name == "json"; });
    const bool logs = any([](const ReportInfo* report) { return report->needs.one_run; }) ||
                      !options.driver_log.empty() || !options.timeline.empty();
    if (logs && (options.policy.asked.size() > 1 || options.replay.traces.size() > 1 || devices.size() > 1))
        throw Error(ErrorCode::usage,
            "--driver-log, --timeline and --report torch-snapshot take one trace and one policy",
            "run the command once for each");
    std::optional<OutputFile> driver_log, timeline;
    if (!options.driver_log.empty()) driver_log.emplace(options.driver_log, invocation.force);
    if (!options.timeline.empty()) timeline.emplace(options.timeline, invocation.force);
    if (timeline) run_options.timeline = [&](std::string_view text) { timeline->write(text); };
    run_options.timeline_every = options.timeline_every;

    std::vector<std::unique_ptr<Recording>> recordings;
    ResultSet set{FRAGSIM_VERSION, invocation.argv, {}};
    BoundRows bounds;
    for (const std::string& path : options.replay.traces) {
        recordings.push_back(std::make_unique<Recording>(load(invocation, path, hash)));
        const Trace& trace = choose_history(*recordings.back(), options.replay.gpu);
        const std::vector<PolicySpec> specs = options.policy.resolve(invocation, *recordings.back());
        const AddressSpace space =
            options.replay.address_space == "fresh" ? fresh_address_space(trace) : read_address_space(trace);
        run_options.address_space = &space.start;
        // With a GPU beside it the host begins as that has to.
        const bool alone = specs.size() == 1 && devices.size() == 1;
        run_options.adopt_start = takes_over_start(specs.front(), policy_of(*recordings.back()), alone);
        TraceResults& on_trace = set.traces.emplace_back(TraceResults{recordings.back().get(), &trace, {}});
        for (const PolicySpec& spec : specs) {
            std::size_t on_host = 0;  // one more than the index of the host's result
            for (const DeviceChoice& device : devices) {
                on_trace.results.push_back(run_on(device, trace, spec, run_options));
                Result& result = on_trace.results.back();
                print_notes(result, invocation);
                if (device.kind == DeviceChoice::Kind::host) on_host = on_trace.results.size();
                if (device.kind == DeviceChoice::Kind::host || on_host == 0) continue;
                const Result& host = on_trace.results[on_host - 1];
                result.agreement = compare_placements(*host.placements, *result.placements);
                result.host_driver_time_ns = host.real("driver_time_ns");
            }
            if (!options.both_bounds || devices.size() > 1) continue;
            if (const auto other = spec.other_end()) {
                on_trace.results.push_back(run_on(devices.front(), trace, *other, run_options));
                const std::size_t row = on_trace.results.size() - 1;
                bounds.note(row, on_trace.results[row - 1], on_trace.results[row]);
            }
        }
    }

    bounds.thin_out(set);

    reports.write(set, invocation);
    if (driver_log) {
        write_driver_log(*driver_log, set.traces.front().results.front());
        driver_log->commit(invocation.quiet);
    }
    if (timeline) timeline->commit(invocation.quiet);

    for (const TraceResults& on_trace : set.traces)
        for (const Result& result : on_trace.results)
            if (!result.audit_findings.empty() || result.spoilt_words > 0 ||
                (options.replay.fail_on_oom && result.outcome.ooms > 0))
                return 1;
    return 0;
}

}  // namespace

void add_replaying_command(CLI::App& command, Invocation& invocation, const char* default_report, bool logs) {
    auto options = std::make_shared<Options>();
    options->both_bounds = options->stored = !logs;
    options->replay.add_options(command, default_report);
    options->policy.add_options(command);
    if (logs) {
        command
            .add_option("--driver-log", options->driver_log, "a CSV line a driver call: op,call,bytes,address,stream")
            ->type_name("FILE")
            ->group("Output");
        command.add_option("--timeline", options->timeline, "a CSV line an op: op,time_us,... bytes")
            ->type_name("FILE")
            ->group("Output");
        command.add_option("--timeline-every", options->timeline_every, "only every N-th op (1)")
            ->type_name("N")
            ->check(CLI::PositiveNumber.description(""))
            ->group("Output");
    }
    if (options->stored)
        command
            .add_flag("--fail-on-regression", options->fail_on_regression,
                "with two stored results: status 1 if a figure of the\nsecond is worse")
            ->group("Output");
    invocation.add_options(command);
    command.callback([options, &command, &invocation] {
        invocation.run = [options, &command, &invocation] { return run(*options, command, invocation); };
    });
}

}  // namespace fragsim
