#include "apps/fragsim/cli.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/fragsim/output_file.hpp"
#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"

namespace fragsim {
namespace {

constexpr const char* kShortHelp =
    "usage: fragsim COMMAND [TRACE...] [OPTIONS]\n"
    "  explain   why out of memory, what helps  tune      the best setting for PyTorch\n"
    "  inspect   what is in a trace             replay    what a policy would have done\n"
    "  compare   policies side by side          sweep     a grid of settings, a line a run\n"
    "  convert   any trace as plain text        verify    does the replay match the recording\n"
    "  check     did anything get worse         calibrate what driver calls cost; list\n"
    "example: fragsim explain run.pickle --capacity 24GiB\n"
    "more: fragsim --help, fragsim COMMAND --help\n";

[[noreturn]] void refuse_word(
    const char* what, const std::string& word, const std::vector<std::string_view>& known, const std::string& help) {
    const std::string_view near = closest(word, known);
    throw Error(ErrorCode::usage, fmt::format("unknown {} '{}'", what, word),
        near.empty() ? fmt::format("{} lists what there is", help) : fmt::format("did you mean '{}'?", near));
}

std::vector<std::string_view> names_of(const std::vector<const CLI::App*>& commands) {
    std::vector<std::string_view> names;
    for (const CLI::App* command : commands) names.push_back(command->get_name());
    return names;
}

// CLI11 found words it has no option for: name the nearest option.
[[noreturn]] void refuse_extra(const CLI::App& app) {
    const auto chosen = app.get_subcommands();
    const CLI::App& command = chosen.empty() ? app : *chosen.front();
    const std::vector<std::string> extra = app.remaining(true);
    const std::string word = extra.empty() ? "" : extra.front().substr(0, extra.front().find('='));
    if (command.get_name() == "explain" && !word.empty() && !word.starts_with("-"))
        throw Error(ErrorCode::usage, fmt::format("explain takes one trace, '{}' is another", word),
            "fragsim tune and fragsim compare take several");
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    const std::string help = fmt::format("fragsim {}--help", chosen.empty() ? "" : command.get_name() + " ");
    refuse_word(word.starts_with("-") ? "option" : "argument", word, {names.begin(), names.end()}, help);
}

}  // namespace

void Invocation::add_options(CLI::App& command) {
    command.add_flag("-q,--quiet", quiet, "no progress, no notes")->group("General");
    command.add_flag("-f,--force", force, "overwrite files that exist")->group("General");
    command.add_flag("--strict", strict, "doubtful entries in a trace are errors")->group("General");
    const std::map<std::string, ColorMode> modes{
        {"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}};
    command.add_option("--color", color, "auto, always, never (auto: on a terminal unless\nNO_COLOR is set)")
        ->transform(CLI::Transformer(modes).description(""))
        ->check(CLI::IsMember(std::vector<int>{0, 1, 2}).description(""))
        ->type_name("WHEN")
        ->group("General");
}

int run_command_line(int argc, char** argv) {
    if (argc <= 1) {
        fmt::print(stderr, "{}", kShortHelp);
        return 2;
    }
    Invocation invocation;
    invocation.argv.assign(argv + 1, argv + argc);
    CLI::App app(
        "Replays recorded GPU allocation traces against allocator policies and says what each would have done:\n"
        "bytes reserved, fragmentation, out of memory, driver calls.",
        "fragsim");
    app.set_version_flag("--version", "fragsim " FRAGSIM_VERSION);
    app.require_subcommand(1);
    app.get_formatter()->column_width(26);
    add_explain_command(app, invocation);
    add_inspect_command(app, invocation);
    add_replay_command(app, invocation);
    add_compare_command(app, invocation);
    add_sweep_command(app, invocation);
    add_check_command(app, invocation);
    add_verify_command(app, invocation);
    add_convert_command(app, invocation);
    add_calibrate_command(app, invocation);
    add_tune_command(app, invocation);
    add_list_command(app, invocation);

    const std::string first = argv[1];
    const auto commands = names_of(std::as_const(app).get_subcommands([](const CLI::App*) { return true; }));
    if (first == "help") {
        write_stdout(app.help());
        return 0;
    }
    if (!first.starts_with("-") && std::find(commands.begin(), commands.end(), first) == commands.end())
        refuse_word("command", first, commands, "fragsim --help");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        const auto chosen = app.get_subcommands();
        write_stdout(chosen.empty() ? app.help() : chosen.front()->help("fragsim"));
        return 0;
    } catch (const CLI::CallForVersion& version) {
        write_stdout(std::string(version.what()) + "\n");
        return 0;
    } catch (const CLI::ExtrasError&) {
        refuse_extra(app);
    } catch (const CLI::ParseError& error) {
        const auto chosen = app.get_subcommands();
        throw Error(ErrorCode::usage, error.what(),
            fmt::format("see fragsim {}--help", chosen.empty() ? "" : chosen.front()->get_name() + " "));
    }
    return invocation.run();
}

}  // namespace fragsim
