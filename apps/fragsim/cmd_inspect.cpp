// fragsim inspect: what is in a trace, without replaying it.
#include <memory>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/output_file.hpp"
#include "lib/report/inspection.hpp"

namespace fragsim {
namespace {

struct Options {
    std::vector<std::string> traces;
    bool json = false;
};

int run(const Options& options, const Invocation& invocation) {
    std::vector<Recording> recordings;
    for (const std::string& path : options.traces) recordings.push_back(load(invocation, path, options.json));
    if (options.json) {
        write_stdout(inspection_json(recordings, FRAGSIM_VERSION, invocation.argv));
        return 0;
    }
    if (recordings.size() > 1) {
        write_stdout(ranks_text(recordings, {use_color(invocation.color), stdout_width()}));
        return 0;
    }
    write_stdout(inspection_text(recordings.front()));
    return 0;
}

}  // namespace

void add_inspect_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command =
        app.add_subcommand("inspect", "What is in a trace: devices, ops, completeness, settings, memory");
    auto options = std::make_shared<Options>();
    command->add_option("TRACE", options->traces, "trace files; - is standard input")->required()->type_name("");
    command->add_flag("--json", options->json, "one JSON document")->group("Output");
    invocation.add_options(*command);
    command->footer(
        "Several traces are taken for ranks of one job: a line each, the outlier marked.\n\nexamples:\n  fragsim "
        "inspect run.pickle\n  fragsim inspect rank*.pickle\n  zcat run.pickle.gz | fragsim inspect - --json");
    command->callback(
        [options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
