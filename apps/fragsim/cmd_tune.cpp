// fragsim tune: the best setting of PyTorch's allocator for one or more traces.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <sstream>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/output_file.hpp"
#include "lib/core/error.hpp"
#include "lib/core/parallel.hpp"
#include "lib/replay/recorded_address_space.hpp"
#include "lib/report/tuning.hpp"
#include "lib/study/capacity_of_recording.hpp"
#include "lib/study/recommendation.hpp"
#include "policies/pytorch/native_config.hpp"
#include "policies/pytorch/setting_keys.hpp"
#include "policies/pytorch/setting_traits.hpp"
#include "policies/pytorch/settings_to_try.hpp"
#include "policies/registry.hpp"

namespace fragsim {
namespace {

struct Options {
    std::vector<std::string> traces;
    std::optional<int> gpu;
    LimitChoice limits;
    std::string objective = "survive,reserved,stall";
    double price = TuneTask{}.price / 1e6;
    int jobs = hardware_jobs();
    bool json = false;
};

std::vector<Goal> parse_objective(const std::string& text) {
    static const std::vector<std::pair<std::string, Goal>> known{
        {"survive", Goal::survive}, {"reserved", Goal::reserved}, {"stall", Goal::stall}};
    std::vector<Goal> goals;
    std::stringstream words(text);
    for (std::string word; std::getline(words, word, ',');) {
        const auto found =
            std::find_if(known.begin(), known.end(), [&](const auto& goal) { return goal.first == word; });
        const bool again = found != known.end() && std::find(goals.begin(), goals.end(), found->second) != goals.end();
        if (found == known.end() || again)
            throw Error(ErrorCode::usage, fmt::format("'{}' is no objective", text),
                "write some of survive, reserved and stall, the first first");
        goals.push_back(found->second);
    }
    if (goals.empty()) throw Error(ErrorCode::usage, "an empty objective", "write survive,reserved,stall");
    return goals;
}

bool older(const std::string& version, const std::string& than) {
    const auto number = [](const std::string& text) {
        return text.empty() ? pytorch::TorchVersion{} : pytorch::parse_torch_version(text);
    };
    return number(version) < number(than);
}

// The keys that every trace's version of PyTorch knows.
std::vector<SettingKey> keys_for(const std::vector<TuneTask::Run>& runs) {
    constexpr Bytes kLargestCard = 256 * kGiB;
    Bytes largest = 32 * kMiB;
    const bool limited =
        std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.options.limits.memory_limit; });
    std::optional<Bytes> memory_limit = runs.front().options.limits.memory_limit;
    std::string version = runs.front().torch_version;
    for (const TuneTask::Run& run : runs) {
        if (memory_limit != run.options.limits.memory_limit) memory_limit.reset();
        // What can be served under no setting cannot be tuned either.
        for (const Buffer& buffer : run.trace->buffers)
            if (buffer.requested <= run.options.limits.bound().value_or(kLargestCard))
                largest = std::max(largest, buffer.requested);
        if (older(run.torch_version, version)) version = run.torch_version;
    }
    // Blocks that come together again may be larger than any request.
    largest = static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(largest)));
    return pytorch::setting_keys(version, limited, memory_limit, std::min(largest, kLargestCard));
}

// A line that every trace's program can use: the oldest version's variable is read by all.
TorchProgram program_of(const std::vector<std::unique_ptr<Recording>>& recordings) {
    TorchProgram program{recordings.front()->torch_version, true, false};
    for (const auto& recording : recordings) {
        if (older(recording->torch_version, program.version)) program.version = recording->torch_version;
        program.hip = program.hip && recording->hip;
        program.assumed = program.assumed || recording->torch_version.empty();
    }
    return program;
}

int run(const Options& options, const Invocation& invocation) {
    TuneTask task;
    task.goals = parse_objective(options.objective);
    if (!(options.price > 0)) throw Error(ErrorCode::usage, "--price is no number", "write millions of events");
    task.price = options.price * 1e6;
    task.jobs = options.jobs;
    const Limits given = options.limits.limits();

    std::vector<std::unique_ptr<Recording>> recordings;
    std::vector<AddressSpace> spaces;
    spaces.reserve(options.traces.size());
    TunedTraces tuned{{}, &task, {}};
    std::vector<std::string> in_force;
    bool private_pools = false, fractions = true;
    double run_ns = 0;
    for (const std::string& path : options.traces) {
        recordings.push_back(std::make_unique<Recording>(load(invocation, path, options.json)));
        const Recording& recording = *recordings.back();
        const Trace& trace = choose_history(recording, options.gpu);
        spaces.push_back(fresh_address_space(trace));
        TuneTask::Run run{&trace, {}, recording.torch_version};
        run.options.address_space = &spaces.back().start;
        in_force.push_back(recording.settings ? recording.settings->alloc_conf : "");
        const std::optional<PolicySpec> recorded = policy_of(recording);
        run.options.limits = limits_for(trace, given, recorded && collects_garbage(*recorded));
        run.options.adopt_start = trace.initial.segments.empty();  // what another setting had cached helps none
        fractions = fractions && run.options.limits.memory_limit;
        if (!trace.time_us.empty()) run_ns += 1e3 * static_cast<double>(trace.time_us.back() - trace.time_us.front());
        private_pools = private_pools || trace.pools.size() > 1;
        task.runs.push_back(std::move(run));
        tuned.recordings.push_back(&recording);
    }
    if (std::all_of(in_force.begin(), in_force.end(), [&](const auto& conf) { return conf == in_force.front(); }) &&
        try_alloc_conf(in_force.front(), task.runs.front().torch_version))
        task.in_force = in_force.front();
    task.program = program_of(recordings);
    task.small_stall_ns = small_stall_ns(run_ns);
    task.keys = keys_for(task.runs);
    for (const int mib : pytorch::kFolklore) task.folklore.push_back(fmt::format("max_split_size_mb:{}", mib));
    task.others = pytorch::settings_to_try(task.limited(), private_pools);
    task.write = [&task](const GridPoint& point, bool expandable) {
        return pytorch::alloc_conf_of(task.keys, point, expandable);
    };
    task.traits = [fractions](const std::string& conf, const std::string& version) {
        SettingTraits traits = pytorch::setting_traits(conf, version);
        if (fractions) traits.needs_memory_fraction = false;  // the program runs under one
        return traits;
    };
    task.read = [](const std::string& conf, const std::string& version) { return try_alloc_conf(conf, version); };

    tuned.tuning = tune(task);
    if (options.json)
        write_stdout(tuning_json(tuned, FRAGSIM_VERSION, invocation.argv));
    else
        write_stdout(tuning_text(tuned, {use_color(invocation.color), stdout_width()}));
    return 0;
}

}  // namespace

void add_tune_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand("tune", fmt::format("Which {} is best for these traces?", alloc_conf_variable()));
    auto options = std::make_shared<Options>();
    command->add_option("TRACE", options->traces, "trace files; - is standard input; several get one setting together")
        ->required()
        ->type_name("");
    add_gpu_option(*command, options->gpu, "Search");
    options->limits.add_options(*command, "Search", true);
    command
        ->add_option("--objective", options->objective,
            "what counts, the first first: survive, reserved (the\nlargest peak), stall (survive,reserved,stall)")
        ->type_name("GOAL,...")
        ->group("Search");
    command->add_option("--price", options->price, "millions of events to replay at most, about (400)")
        ->type_name("N")
        ->check(CLI::Range(0.001, 1e9).description(""))
        ->group("Search");
    add_jobs_option(*command, options->jobs, "Search");
    command->add_flag("--json", options->json, "one JSON document")->group("Output");
    invocation.add_options(*command);
    command->footer(
        "Searched are max_split_size_mb, max_non_split_rounding_mb, garbage_collection_threshold (with\na memory limit), "
        "roundup_power2_divisions, large_segment_size_mb, expandable_segments and\nbackend:cudaMallocAsync, as far as "
        "the recording's version of PyTorch knows them. One key at a\ntime every value is decided; keys together are "
        "searched from the best on, which can miss one.\n\nexamples:\n  fragsim tune run.pickle --capacity 24GiB\n"
        "  fragsim tune rank*.pickle --objective survive,stall,reserved");
    command->callback(
        [options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
