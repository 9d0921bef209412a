// fragsim explain: why did it run out of memory, and which setting would have carried it.
#include <fmt/format.h>

#include <memory>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/output_file.hpp"
#include "lib/core/error.hpp"
#include "lib/core/parallel.hpp"
#include "lib/core/sizes.hpp"
#include "lib/replay/recorded_address_space.hpp"
#include "lib/report/explanation.hpp"
#include "policies/pytorch/settings_to_try.hpp"
#include "policies/registry.hpp"

namespace fragsim {
namespace {

struct Options {
    std::string trace;
    std::optional<int> gpu;
    std::string capacity;
    PolicyChoice policy;
    int jobs = hardware_jobs();
    bool json = false;
};

// Settings that the recording's version of PyTorch knows.
std::vector<Setting> known_settings(const Recording& recording, bool limited) {
    std::vector<Setting> settings;
    for (const std::string& conf : pytorch::settings_to_try(limited)) try {
            std::vector<std::string> warnings;
            settings.push_back({policy_from_alloc_conf(conf, warnings, recording.torch_version), conf});
        } catch (const Error& error) {
            if (error.code() != ErrorCode::usage) throw;
        }
    return settings;
}

Setting in_force(const PolicySpec& spec) {
    if (spec.info->name == "torch-async") return {spec, "backend:cudaMallocAsync"};
    if (!spec.info->torch_settings) return {spec, {}};
    return {spec, spec.info->torch_settings(spec.settings()).alloc_conf};
}

int run(const Options& options, const Invocation& invocation) {
    ExplainOptions explain_options;
    if (!options.capacity.empty()) explain_options.run.capacity = parse_size(options.capacity);
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
    const bool limited = explain_options.run.capacity || capacity_of_recording(trace);
    const ExplainedTrace explained{&recording, &trace,
        explain(trace, in_force(specs.front()), known_settings(recording, limited), explain_options)};
    if (options.json)
        write_stdout(explanation_json(explained, FRAGSIM_VERSION, invocation.argv));
    else
        write_stdout(explanation_text(explained, {use_color(invocation.color), stdout_width()}));
    return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command =
        app.add_subcommand("explain", "Why did it run out of memory, and which setting would have carried it?");
    auto options = std::make_shared<Options>();
    command->add_option("TRACE", options->trace, "a trace file; - is standard input")->required()->type_name("");
    command->add_option("--gpu", options->gpu, "device whose history to take (the busiest one)")
        ->type_name("N")
        ->group("Replay");
    command
        ->add_option("--capacity", options->capacity,
            "what the process may reserve (what the recording\nshows, if it ran out of memory; else no bound)")
        ->type_name("SIZE")
        ->group("Replay");
    options->policy.add_options(*command);
    command->add_option("--jobs", options->jobs, "replays at once (one a core)")
        ->type_name("N")
        ->check(CLI::PositiveNumber.description(""))
        ->group("Replay");
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
