// fragsim sweep: a grid of policies, parameters, capacities and traces, one JSON line a run.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/sweep_output.hpp"
#include "lib/core/error.hpp"
#include "lib/core/parallel.hpp"
#include "lib/replay/recorded_address_space.hpp"
#include "lib/report/format.hpp"
#include "lib/report/sweep_line.hpp"
#include "lib/study/sweep_axes.hpp"
#include "policies/registry.hpp"

namespace fragsim {
namespace {

struct Options {
    std::vector<std::string> traces, axes;
    PolicyChoice policy;
    ReplayChoice replay;  // limits, on_oom and frees of it
    std::optional<int> gpu;
    std::string output;
    int jobs = hardware_jobs();
    std::size_t max_runs = 100'000;
};

std::string plural(std::size_t count, const char* one) {
    return fmt::format("{} {}{}", format_count(static_cast<std::int64_t>(count)), one, count == 1 ? "" : "s");
}

// Values of the axis `name`, or what the option of the same meaning says; "": no such limit.
std::vector<std::string> limit_values(
    const std::vector<SweepAxis>& axes, std::string_view name, const std::string& given, const char* option) {
    for (const SweepAxis& axis : axes) {
        if (!axis.is_limit() || axis.parameter != name) continue;
        if (!given.empty())
            throw Error(
                ErrorCode::usage, fmt::format("{} beside an axis {}", option, name), "put its value into the axis");
        return axis.values;
    }
    return {given};
}

// Every capacity with every memory limit, the latter changing fastest.
std::vector<Limits> limits_of(const LimitChoice& given, const std::vector<SweepAxis>& axes) {
    std::vector<Limits> limits;
    for (const std::string& capacity : limit_values(axes, "capacity", given.capacity, "--capacity"))
        for (const std::string& limit : limit_values(axes, "memory_limit", given.memory_limit, "--memory-limit"))
            limits.push_back(parse_limits(capacity, limit));
    return limits;
}

// A recording and what all runs over it share.
struct Loaded {
    Loaded(Recording read, std::optional<int> gpu)
        : recording(std::move(read)), trace(choose_history(recording, gpu)), space(fresh_address_space(trace)) {}
    Recording recording;
    const Trace& trace;
    AddressSpace space;
};

// In the order of the output: traces, policies, limits, the last changing fastest.
std::vector<SweepRun> grid(const std::vector<std::unique_ptr<Loaded>>& loaded, const PolicyChoice& policy,
    const std::vector<Limits>& limits, const RunOptions& options, const Invocation& invocation) {
    std::vector<SweepRun> runs;
    for (const auto& one : loaded)
        for (const PolicySpec& spec : policy.resolve(invocation, one->recording))
            for (const Limits& one_limits : limits) {
                SweepRun& run = runs.emplace_back(SweepRun{&one->recording, &one->trace, spec, options});
                run.options.limits = one_limits;
                run.options.address_space = &one->space.start;
                run.options.adopt_start = false;  // a sweep compares
                check_values(run);
            }
    return runs;
}

std::vector<std::string> keys_of(const std::vector<SweepRun>& runs) {
    std::vector<std::string> keys;
    std::unordered_map<std::string, std::size_t> seen;
    for (const SweepRun& run : runs) {
        const auto [first, fresh] = seen.emplace(sweep_key(run, FRAGSIM_VERSION), keys.size());
        if (!fresh)
            throw Error(ErrorCode::usage,
                fmt::format("{} with {} is asked for twice", run.recording->path, run.policy.label()),
                fmt::format("the same run as {} with {}: give each trace, policy and value once",
                    runs[first->second].recording->path, runs[first->second].policy.label()));
        keys.push_back(first->first);
    }
    return keys;
}

int run(const Options& options, const Invocation& invocation) {
    std::vector<SweepAxis> axes;
    for (const std::string& text : options.axes) axes.push_back(parse_sweep_axis(text));
    const std::uint64_t count = count_runs(options.traces.size(), options.policy.asked, axes);
    if (count > options.max_runs)
        throw Error(ErrorCode::usage, count == kUncountable ? "10^18 runs or more" : plural(count, "run"),
            count == kUncountable ? "leave out an axis, or values"
                                  : fmt::format("allow them with --max-runs {}", count));
    // Settings of --alloc-conf pass through: no axis has their name.
    const PolicyChoice policy{expand_policies(options.policy.asked, axes)};
    policy.check();
    const std::vector<Limits> limits = limits_of(options.replay.limits, axes);

    std::vector<std::unique_ptr<Loaded>> loaded;
    for (const std::string& path : options.traces) {
        std::error_code ignored;  // what is not there is no file of ours either
        if (std::filesystem::equivalent(path, options.output, ignored))
            throw Error(
                ErrorCode::usage, fmt::format("{} is one of the traces", options.output), "choose another file");
    }
    for (const std::string& path : options.traces)
        loaded.push_back(std::make_unique<Loaded>(load(invocation, path, true), options.gpu));
    ReplayChoice replay = options.replay;
    replay.limits = {};  // each run of the grid has its own
    const RunOptions run_options = replay.run_options();
    const std::vector<SweepRun> runs = grid(loaded, policy, limits, run_options, invocation);
    const std::vector<std::string> keys = keys_of(runs);
    std::unique_ptr<SweepOutput> output;
    if (options.output.empty() || options.output == "-")
        output = std::make_unique<SweepStdout>();
    else
        output = std::make_unique<SweepFile>(options.output, invocation.force, keys);
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < runs.size(); ++i)
        if (!output->has(i)) left.push_back(i);
    const std::size_t kept = runs.size() - left.size();
    if (!invocation.quiet)
        print_diagnostic("note", fmt::format("{}, {} there already; {} at a time", plural(runs.size(), "run"),
                                     format_count(static_cast<std::int64_t>(kept)), options.jobs));

    ProgressLine line("sweeping", invocation.quiet);
    const Progress progress = line.callback();
    std::mutex writing;
    std::size_t done = 0, surviving = output->surviving;
    for_each_index(left.size(), options.jobs, [&](std::size_t i) {
        const SweepRun& one = runs[left[i]];
        const Result result = run_policy(*one.trace, one.policy, one.options);
        const std::string text = sweep_line(one, result, FRAGSIM_VERSION);
        const std::lock_guard lock(writing);
        output->put(left[i], text);
        surviving += result.survives();
        if (progress) progress(++done, left.size());
    });
    line.erase();
    output->finish(true);
    if (!invocation.quiet)
        print_diagnostic("note", fmt::format("{} of {} survive", format_count(static_cast<std::int64_t>(surviving)),
                                     plural(runs.size(), "run")));
    return 0;
}

}  // namespace

void add_sweep_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand("sweep", "A grid of policies, parameters, capacities and traces");
    auto options = std::make_shared<Options>();
    command->add_option("TRACE", options->traces, "trace files; - is standard input")->required()->type_name("");
    command
        ->add_option("--axis", options->axes,
            "values that a policy's parameter or a limit takes\nin turn; again for more axes; every combination "
            "is run")
        ->type_name("POLICY.KEY=VALUES")
        ->take_all()
        ->allow_extra_args(false)
        ->group("Grid");
    options->policy.add_options(*command);
    add_gpu_option(*command, options->gpu, "Replay");
    options->replay.limits.add_options(*command, "Replay", false);
    command->add_option("--on-oom", options->replay.on_oom, "skip the allocation and go on, or stop (skip)")
        ->check(CLI::IsMember({"skip", "stop"}).description(""))
        ->type_name("WHAT")
        ->group("Replay");
    add_jobs_option(*command, options->jobs, "Replay");
    command->add_option("--max-runs", options->max_runs, "refuse to start more (100000)")
        ->type_name("N")
        ->group("Grid");
    command->add_option("-o,--output", options->output, "a file that keeps every finished run (standard output)")
        ->type_name("FILE")
        ->group("Output");
    invocation.add_options(*command);
    command->footer(
        "VALUES: 64, [32,64,256], [FROM:TO:STEP], [FROM:TO:*FACTOR], or a list of all these; TO is\n"
        "included. The axes capacity and memory_limit take sizes and none, memory_limit also shares of\n"
        "the capacity. A value with commas or colons stands in brackets of its own:\n"
        "caching.roundup_power2_divisions=[4,[256:1,512:2,>:4]].\n\n"
        "An axis is for every --policy of its name; without one the policy is added. Runs are ordered\n"
        "by trace, policy, values, capacity and memory limit, the last changing fastest. A line is what\n"
        "replay --json says of a run, without times; out of memory is a result.\n\n"
        "With -o the same command goes on where it was stopped. A sweep that grew keeps what is there;\n"
        "a file with other runs is refused, --force begins it anew.\n\n"
        "examples:\n"
        "  fragsim sweep run.pickle --axis 'caching.max_split_size_mb=[32:512:*2]'\n"
        "  fragsim sweep run.pickle --policy caching --policy expandable --axis 'capacity=[1GiB:2GiB:512MiB,none]'");
    command->callback(
        [options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
