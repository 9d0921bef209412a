// fragsim replay: one or more policies over one or more traces, in full.
#include "apps/fragsim/replay_command.hpp"

namespace fragsim {

void add_replay_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand("replay", "What would a policy have done with this program?");
    command->footer(
        "Without a policy the settings of the recording are taken. An out of memory is a\nresult, not an error.\n\n"
        "examples:\n"
        "  fragsim replay run.pickle --capacity 24GiB\n"
        "  fragsim replay run.pickle --alloc-conf max_split_size_mb:128 --json\n"
        "  fragsim replay run.pickle --policy caching --driver-log calls.csv --timeline ops.csv\n"
        "  fragsim replay run.pickle --policy expandable --report torch-snapshot=would.pickle");
    add_replaying_command(*command, invocation, "detail", true);
}

}  // namespace fragsim
