// fragsim explain: why did it run out of memory, and which setting would have carried it.
#include <fmt/format.h>

#include <memory>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/output_file.hpp"
#include "apps/fragsim/report_outputs.hpp"
#include "lib/core/error.hpp"
#include "lib/core/parallel.hpp"
#include "lib/replay/recorded_address_space.hpp"
#include "lib/report/explanation.hpp"
#include "lib/report/message.hpp"
#include "lib/trace/input.hpp"
#include "policies/pytorch/setting_traits.hpp"
#include "policies/pytorch/settings_to_try.hpp"
#include "policies/registry.hpp"

namespace fragsim {
namespace {

struct Options {
    std::string trace;
    std::optional<int> gpu;
    LimitChoice limits;
    PolicyChoice policy;
    std::string message;  // file of a pasted out-of-memory message, instead of a trace
    std::vector<std::string> reports;
    int jobs = hardware_jobs();
    bool json = false;
};

int explain_message(const Options& options, const Invocation& invocation) {
    if (options.limits.given() || !options.policy.asked.empty() || !options.reports.empty() || options.gpu)
        throw Error(ErrorCode::usage, "a message is explained by itself", "leave out all but --message and --json");
    const OomMessage message = read_oom_message(read_text(options.message));
    if (message.origin == OomOrigin::unknown)
        throw Error(ErrorCode::input, fmt::format("{}: no out-of-memory message in it", options.message),
            "paste the whole message, from the exception's name on");
    const MessageVerdict verdict = judge(message);
    write_stdout(options.json ? message_json(message, verdict, FRAGSIM_VERSION, invocation.argv)
                              : message_text(message, verdict));
    return 0;
}

// Settings of PyTorch's that its version knows. On a card, those that need a memory fraction are tried under one that
// is as large.
std::vector<Setting> torch_settings(const std::string& version, const Limits& limits, bool private_pools) {
    std::vector<Setting> settings;
    for (const std::string& conf : pytorch::settings_to_try(limits.bound().has_value(), private_pools))
        if (auto spec = try_alloc_conf(conf, version)) {
            settings.push_back({std::move(*spec), conf, pytorch::setting_traits(conf, version)});
            if (limits.memory_limit) settings.back().traits.needs_memory_fraction = false;  // it runs under one
        }
    return settings;
}

// What users of another allocator can set.
std::vector<Setting> own_settings(const PolicyInfo& info, std::optional<Bytes> capacity) {
    std::vector<Setting> settings;
    if (!info.own_settings) return settings;
    for (OwnSetting& own : info.own_settings(capacity)) {
        PolicySpec spec = parse_policy_spec(own.policy, policies());
        settings.push_back({std::move(spec), {}, {SettingKind::native, 1, false, own.last_resort}, std::move(own)});
    }
    return settings;
}

Setting setting_in_force(const PolicySpec& spec, const std::string& version) {
    if (!spec.info->alloc_conf) return {spec, {}};
    const std::string conf = spec.info->alloc_conf(spec.settings());
    return {spec, conf, pytorch::setting_traits(conf, version)};
}

// The version that the policy was given, else the recording's.
std::string version_of(const PolicySpec& spec, const Recording& recording) {
    for (const auto& [name, value] : spec.settings())
        if (name == "torch_version") return value;
    return recording.torch_version;
}

int run(const Options& options, const Invocation& invocation) {
    if (options.trace.empty() == options.message.empty())
        throw Error(ErrorCode::usage, "explain takes a trace or a message",
            "fragsim explain run.pickle, or fragsim explain --message error.txt");
    if (!options.message.empty()) return explain_message(options, invocation);
    ReportOutputs reports(options.reports, false, "", invocation.force);
    for (const ReportInfo* report : reports.infos())
        if (report->needs.one_run)
            throw Error(
                ErrorCode::usage, fmt::format("explain has no report {}", report->name), "fragsim replay writes it");
    ExplainOptions explain_options;
    explain_options.run.limits = options.limits.limits();
    explain_options.jobs = options.jobs;
    options.policy.check();

    const Recording recording = load(invocation, options.trace, options.json);
    const Trace& trace = choose_history(recording, options.gpu);
    const std::vector<PolicySpec> specs = options.policy.resolve(invocation, recording);
    if (specs.size() != 1)
        throw Error(
            ErrorCode::usage, "explain takes one policy: the one in force", "fragsim compare has several side by side");
    const AddressSpace space = fresh_address_space(trace);
    explain_options.run.address_space = &space.start;
    const PolicySpec& spec = specs.front();
    explain_options.run.adopt_start = takes_over_start(spec, policy_of(recording), true);
    const std::string version = version_of(spec, recording);
    explain_options.program = {version, recording.hip, recording.torch_version.empty() && options.policy.asked.empty()};
    const Limits limits = limits_for(trace, explain_options.run.limits, collects_garbage(spec));
    const std::vector<Setting> settings = spec.info->alloc_conf
                                              ? torch_settings(version, limits, trace.pools.size() > 1)
                                              : own_settings(*spec.info, limits.bound());
    ResultSet set{FRAGSIM_VERSION, invocation.argv, {}};
    TraceResults& explained = set.traces.emplace_back(TraceResults{&recording, &trace, {}, {}});
    explained.explanation = explain(trace, setting_in_force(spec, version), settings, explain_options);
    if (options.json)
        write_stdout(explanation_json(explained, FRAGSIM_VERSION, invocation.argv));
    else
        write_stdout(explanation_text(explained, {use_color(invocation.color), stdout_width()}));
    if (reports.infos().empty()) return 0;

    RunOptions run_options = explain_options.run;
    run_options.limits = explained.explanation->limits;
    run_options.adopt_start = !explained.explanation->starts_in_mid_run;  // as the settings are judged
    run_options.record_history = run_options.record_series = true;
    explained.results.push_back(run_policy(trace, specs.front(), run_options));
    if (const auto best = explained.explanation->recommended)
        explained.results.push_back(
            run_policy(trace, explained.explanation->settings[*best].setting.spec, run_options));
    reports.write(set, invocation);
    return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command =
        app.add_subcommand("explain", "Why did it run out of memory, and which setting would have carried it?");
    auto options = std::make_shared<Options>();
    command->add_option("TRACE", options->trace, "a trace file; - is standard input")->type_name("");
    command
        ->add_option("--message", options->message,
            "the text of an out-of-memory error instead of a trace,\nas far as its figures go; - is standard input")
        ->type_name("FILE");
    add_gpu_option(*command, options->gpu, "Replay");
    options->limits.add_options(*command, "Replay", true);
    options->policy.add_options(*command);
    add_jobs_option(*command, options->jobs, "Replay");
    command
        ->add_option("--report", options->reports,
            "besides the text, html=FILE: the same as a page with\ncharts and memory maps; perfetto=FILE")
        ->type_name("FORMAT=FILE")
        ->take_all()
        ->allow_extra_args(false)
        ->group("Output");
    command->add_flag("--json", options->json, "one JSON document")->group("Output");
    invocation.add_options(*command);
    command->footer(
        "A policy given is the one in force; without it that of the recording is.\n\"smallest card\" is the least "
        "capacity, to 2 MiB, at which the run goes through; the CUDA\ncontext and libraries come on top.\n\n"
        "examples:\n  fragsim explain run.pickle\n  fragsim explain run.pickle --capacity 24GiB");
    command->callback(
        [options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
