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
#include "lib/core/sizes.hpp"
#include "lib/replay/recorded_address_space.hpp"
#include "lib/report/tuning.hpp"
#include "lib/study/capacity_of_recording.hpp"
#include "policies/pytorch/setting_keys.hpp"
#include "policies/registry.hpp"

namespace fragsim {
namespace {

struct Options {
    std::vector<std::string> traces;
    std::optional<int> gpu;
    std::string capacity, objective = "survive,reserved,stall";
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

std::optional<PolicySpec> read_setting(const std::string& alloc_conf, const std::string& torch_version) {
    std::vector<std::string> warnings;
    try {
        return policy_from_alloc_conf(alloc_conf, warnings, torch_version);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::usage) throw;
        return {};
    }
}

int run(const Options& options, const Invocation& invocation) {
    TuneTask task;
    task.goals = parse_objective(options.objective);
    task.price = options.price * 1e6;
    task.jobs = options.jobs;
    std::optional<Bytes> given;
    if (!options.capacity.empty()) given = parse_size(options.capacity);

    std::vector<std::unique_ptr<Recording>> recordings;
    std::vector<AddressSpace> spaces;
    spaces.reserve(options.traces.size());
    TunedTraces tuned{{}, &task, {}};
    Bytes largest = 0;
    std::optional<Bytes> least_capacity_of_all;
    bool limited = true;
    std::vector<std::string> in_force;
    for (const std::string& path : options.traces) {
        recordings.push_back(std::make_unique<Recording>(load(invocation, path, options.json)));
        const Recording& recording = *recordings.back();
        const Trace& trace = choose_history(recording, options.gpu);
        spaces.push_back(fresh_address_space(trace));
        TuneTask::Run run{&trace, {}, recording.torch_version};
        run.options.address_space = &spaces.back().start;
        run.options.capacity = given;
        if (const auto recorded = capacity_of_recording(trace); recorded && !given)
            run.options.capacity = recorded->bytes;
        if (run.options.capacity)
            least_capacity_of_all =
                std::min(least_capacity_of_all.value_or(*run.options.capacity), *run.options.capacity);
        else
            limited = false;
        for (const Buffer& buffer : trace.buffers) largest = std::max(largest, buffer.requested);
        in_force.push_back(recording.settings ? recording.settings->alloc_conf : "");
        task.runs.push_back(std::move(run));
        tuned.recordings.push_back(&recording);
    }
    if (std::all_of(in_force.begin(), in_force.end(), [&](const auto& conf) { return conf == in_force.front(); }) &&
        read_setting(in_force.front(), task.runs.front().torch_version))
        task.in_force = in_force.front();
    // Blocks that come together again may be larger than any request: leave room for twice that.
    task.keys = pytorch::setting_keys(task.runs.front().torch_version, limited ? least_capacity_of_all : std::nullopt,
        static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(std::max<Bytes>(largest, 32 * kMiB)))));
    for (const int mib : {32, 64, 128, 256, 512}) task.folklore.push_back(fmt::format("max_split_size_mb:{}", mib));
    task.others = {"expandable_segments:True", "backend:cudaMallocAsync"};
    task.write = [&task](const GridPoint& point, bool expandable) {
        return pytorch::alloc_conf_of(task.keys, point, expandable);
    };
    task.read = read_setting;

    tuned.tuning = tune(task);
    if (options.json)
        write_stdout(tuning_json(tuned, FRAGSIM_VERSION, invocation.argv));
    else
        write_stdout(tuning_text(tuned, {use_color(invocation.color), stdout_width()}));
    return 0;
}

}  // namespace

void add_tune_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand("tune", "Which PYTORCH_CUDA_ALLOC_CONF is best for these traces?");
    auto options = std::make_shared<Options>();
    command->add_option("TRACE", options->traces, "trace files; - is standard input; several get one setting together")
        ->required()
        ->type_name("");
    command->add_option("--gpu", options->gpu, "device whose history to take (the busiest one)")
        ->type_name("N")
        ->group("Search");
    command
        ->add_option("--capacity", options->capacity,
            "what each process may reserve (what the recording\nshows, if it ran out of memory; else no bound)")
        ->type_name("SIZE")
        ->group("Search");
    command
        ->add_option("--objective", options->objective,
            "what counts, the first first: survive, reserved (the\nlargest peak), stall (survive,reserved,stall)")
        ->type_name("GOAL,...")
        ->group("Search");
    command->add_option("--price", options->price, "millions of events to replay at most, about (400)")
        ->type_name("N")
        ->check(CLI::PositiveNumber.description(""))
        ->group("Search");
    command->add_option("--jobs", options->jobs, "replays at once (one a core)")
        ->type_name("N")
        ->check(CLI::PositiveNumber.description(""))
        ->group("Search");
    command->add_flag("--json", options->json, "one JSON document")->group("Output");
    invocation.add_options(*command);
    command->footer(
        "Searched are max_split_size_mb, max_non_split_rounding_mb, garbage_collection_threshold (with\na capacity), "
        "roundup_power2_divisions, large_segment_size_mb, expandable_segments and\nbackend:cudaMallocAsync, as far as "
        "the recording's version of PyTorch knows them. One key at a\ntime every value is decided; keys together are "
        "searched from the best on, which can miss one.\n\nexamples:\n  fragsim tune run.pickle --capacity 24GiB\n"
        "  fragsim tune rank*.pickle --objective survive,stall,reserved");
    command->callback(
        [options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
