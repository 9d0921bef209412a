// fragsim convert: a trace of any format as plain text.
#include <memory>

#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/output_file.hpp"
#include "traces/text.hpp"

namespace fragsim {
namespace {

struct Options {
    std::string trace, output = "-";
    std::optional<int> gpu;
};

int run(const Options& options, const Invocation& invocation) {
    OutputFile file(options.output, invocation.force);
    const Recording recording = load(invocation, options.trace, false);
    const std::string text = write_text(choose_trace(recording, options.gpu));
    file.write(text);
    file.commit(invocation.quiet);
    return 0;
}

}  // namespace

void add_convert_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand("convert", "A trace of any format as plain text");
    auto options = std::make_shared<Options>();
    command->add_option("TRACE", options->trace, "trace file; - is standard input")->required()->type_name("");
    command->add_option("--gpu", options->gpu, "device whose history to take (one that ran out of\nmemory, else the busiest one)")->type_name("N");
    command->add_option("-o,--output", options->output, "where it goes (standard output)")->type_name("FILE");
    command->footer(
        "One line an allocation or free, as traces/FORMAT.md describes. Recorded addresses, times\n"
        "and memory pools are left out; what was in use at the start comes as allocations.\n\n"
        "example:\n"
        "  fragsim convert run.pickle -o run.txt");
    invocation.add_options(*command);
    command->callback(
        [options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
