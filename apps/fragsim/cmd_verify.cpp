// fragsim verify: does the replay of a PyTorch snapshot match its own recording?
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/output_file.hpp"
#include "lib/core/error.hpp"
#include "lib/report/verification.hpp"

namespace fragsim {
namespace {

struct Options {
    std::vector<std::string> traces;
    std::optional<int> gpu;
    LimitChoice limits;
    PolicyChoice policy;
    bool json = false;
};

Verification verify_recording(const Recording& recording, const Options& options, const Invocation& invocation) {
    const Limits limits = options.limits.limits();
    const PolicySpec spec = options.policy.resolve(invocation, recording).front();
    Verification verification{&recording, spec.label(), {}};
    for (const Trace& trace : recording.traces) {
        if (options.gpu && trace.device != *options.gpu) continue;
        if (trace.events.empty()) continue;
        const bool addressed = std::any_of(
            trace.buffers.begin(), trace.buffers.end(), [](const Buffer& b) { return b.recorded_address != 0; });
        if (!addressed)
            throw Error(ErrorCode::input,
                fmt::format("{}: a {} has no recorded addresses to compare with", recording.path, recording.format),
                "verify takes PyTorch snapshots with a history");
        if (trace.segment_events.empty() && (!trace.final || trace.final->segments.empty()))
            throw Error(ErrorCode::input,
                fmt::format("{}: no segments recorded: addresses cannot be compared", recording.path),
                "verify takes PyTorch snapshots with a history: they say which segments the driver gave");
        verification.results.push_back(verify(trace, [&](Device& device) {
            return spec.info->make(spec.settings(), {device, limits, trace.pools});
        }));
    }
    if (verification.results.empty()) {
        if (options.gpu) choose_trace(recording, options.gpu);
        throw Error(ErrorCode::input, fmt::format("{}: no history to verify", recording.path),
            "torch.cuda.memory._record_memory_history records one");
    }
    return verification;
}

int run(const Options& options, const Invocation& invocation) {
    options.policy.check();
    std::vector<std::unique_ptr<Recording>> recordings;
    std::vector<Verification> all;
    for (const std::string& path : options.traces) {
        recordings.push_back(std::make_unique<Recording>(load(invocation, path, false)));
        all.push_back(verify_recording(*recordings.back(), options, invocation));
        if (!options.json) write_stdout(verification_text(all.back()));
    }
    if (options.json) write_stdout(verification_json(all, FRAGSIM_VERSION, invocation.argv));
    for (const Verification& verification : all)
        for (const VerifyResult& result : verification.results)
            if (!result.exact()) return 1;
    return 0;
}

}  // namespace

void add_verify_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command =
        app.add_subcommand("verify", "Does the replay of a snapshot match its own recording, call by call?");
    auto options = std::make_shared<Options>();
    command->add_option("TRACE", options->traces, "PyTorch snapshots; - is standard input")->required()->type_name("");
    command->add_option("--gpu", options->gpu, "only this device (all)")->type_name("N")->group("Replay");
    options->limits.add_options(*command, "Replay", false);
    options->policy.add_options(*command);
    command->add_flag("--json", options->json, "one JSON document")->group("Output");
    invocation.add_options(*command);
    command->footer(
        "The device answers as the recorded one did, so every address can be compared.\nExit status 0: exact, 1: not "
        "exact.\n\n"
        "examples:\n  fragsim verify run.pickle\n  fragsim verify rank*.pickle --json");
    command->callback(
        [options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
