#include "apps/fragsim/replay_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/fragsim/output_file.hpp"
#include "lib/core/error.hpp"
#include "lib/report/report.hpp"

namespace fragsim {
namespace {

struct Options {
    ReplayChoice replay;
    PolicyChoice policy;
    std::string driver_log, timeline;
    std::uint32_t timeline_every = 1;
};

void write_driver_log(OutputFile& file, const Result& result) {
    file.write("op,call,bytes,address,stream\n");
    for (const DriverCall& call : result.driver_calls)
        file.write(fmt::format("{},{},{},{:#x},{}\n", call.op, name(call.kind), call.bytes, call.address, call.stream.value));
}

int run(const Options& options, const Invocation& invocation) {
    RunOptions run_options = options.replay.run_options();
    std::optional<OutputFile> driver_log, timeline;
    if (!options.driver_log.empty()) driver_log.emplace(options.driver_log, invocation.force);
    if (!options.timeline.empty()) timeline.emplace(options.timeline, invocation.force);
    if (timeline) run_options.timeline = [&](std::string_view text) { timeline->write(text); };
    run_options.timeline_every = options.timeline_every;

    const std::string report_name = options.replay.json ? "json" : options.replay.report;
    std::vector<std::unique_ptr<Recording>> recordings;
    ResultSet set{FRAGSIM_VERSION, invocation.argv, {}};
    for (const std::string& path : options.replay.traces) {
        recordings.push_back(std::make_unique<Recording>(load(invocation, path, report_name == "json")));
        const Trace& trace = choose_trace(*recordings.back(), options.replay.gpu);
        if (trace.completeness == Completeness::no_events)
            throw Error(ErrorCode::input, fmt::format("{}: device {} has no history to replay", path, trace.device), "fragsim inspect shows its memory; torch.cuda.memory._record_memory_history records a history");
        const std::vector<PolicySpec> specs = options.policy.resolve(invocation, *recordings.back());
        if ((driver_log || timeline) && (specs.size() > 1 || options.replay.traces.size() > 1))
            throw Error(ErrorCode::usage, "--driver-log and --timeline take one trace and one policy", "run the command once for each");
        TraceResults& on_trace = set.traces.emplace_back(TraceResults{recordings.back().get(), &trace, {}});
        for (const PolicySpec& spec : specs) {
            on_trace.results.push_back(run_policy(trace, spec, run_options));
            const Result& result = on_trace.results.back();
            if (!invocation.quiet)
                for (const std::string& advice : result.advice) print_diagnostic("note", result.label + ": " + advice);
            for (const AuditFinding& finding : result.audit_findings)
                print_diagnostic("audit", fmt::format("{}: op {}: {}: {}", result.label, finding.op, name(finding.rule), finding.what));
        }
    }

    const auto report = std::find_if(reports().begin(), reports().end(), [&](const ReportInfo& r) { return r.name == report_name; });
    write_stdout(report->render(set, {use_color(invocation.color), stdout_width()}));
    if (driver_log) {
        write_driver_log(*driver_log, set.traces.front().results.front());
        driver_log->commit(invocation.quiet);
    }
    if (timeline) timeline->commit(invocation.quiet);

    for (const TraceResults& on_trace : set.traces)
        for (const Result& result : on_trace.results)
            if (!result.audit_findings.empty() || (options.replay.fail_on_oom && result.outcome.ooms > 0)) return 1;
    return 0;
}

}  // namespace

void add_replaying_command(CLI::App& command, Invocation& invocation, const char* default_report, bool logs) {
    auto options = std::make_shared<Options>();
    options->replay.add_options(command, default_report);
    options->policy.add_options(command);
    if (logs) {
        command.add_option("--driver-log", options->driver_log, "a CSV line a driver call: op,call,bytes,address,stream")->type_name("FILE")->group("Output");
        command.add_option("--timeline", options->timeline, "a CSV line an op: op,time_us,... bytes")->type_name("FILE")->group("Output");
        command.add_option("--timeline-every", options->timeline_every, "only every N-th op (1)")->type_name("N")->check(CLI::PositiveNumber.description(""))->group("Output");
    }
    invocation.add_options(command);
    command.callback([options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
