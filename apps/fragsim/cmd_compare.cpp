// fragsim compare: policies side by side, a row each.
#include "apps/fragsim/replay_command.hpp"

namespace fragsim {

void add_compare_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand("compare", "Policies and settings side by side, or two stored results");
    command->footer(
        "The first policy is what the others are compared with. A star marks the best of a column.\n"
        "\"over need\" is peak reserved over the least that any allocator needs.\n\n"
        "Two files that replay --json or compare --json wrote are compared figure by figure, the second\n"
        "against the first; their reports are those of fragsim check.\n\n"
        "examples:\n"
        "  fragsim compare run.pickle --policy caching --policy split-capped:max_split_size_mb=128\n"
        "  fragsim compare run.pickle --capacity 10GiB --alloc-conf '' --alloc-conf garbage_collection_threshold:0.8\n"
        "  fragsim compare run.pickle --policy caching --policy expandable --report html=page.html\n"
        "  fragsim compare before.json after.json --fail-on-regression");
    add_replaying_command(*command, invocation, "table", false);
}

}  // namespace fragsim
