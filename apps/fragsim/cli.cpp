#include "apps/fragsim/cli.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "apps/fragsim/output_file.hpp"
#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"
#include "lib/core/sizes.hpp"
#include "lib/report/report.hpp"
#include "policies/registry.hpp"
#include "traces/registry.hpp"

namespace fragsim {
namespace {

constexpr const char* kShortHelp =
    "usage: fragsim COMMAND [TRACE...] [OPTIONS]\n"
    "  inspect   what is in a trace          replay    what a policy would have done\n"
    "  compare   policies side by side       verify    does the replay match the recording\n"
    "  convert   any trace as plain text     calibrate what this GPU's driver calls cost\n"
    "  list      policies, formats, metrics, reports\n"
    "example: fragsim compare run.pickle --policy caching --policy split-capped:max_split_size_mb=128\n"
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

Recording load(const Invocation& invocation, const std::string& path, bool hash) {
    ProgressLine line("reading " + path, invocation.quiet);
    Recording recording = read_recording(path, {line.callback(), hash});
    line.erase();
    for (const Diagnostics::Entry& entry : recording.diagnostics.entries()) {
        const std::string text = fmt::format("{}: {}: {}, first at {}", path, entry.kind,
            entry.count == 1 ? "once" : fmt::format("{} times", entry.count), entry.first_position);
        if (invocation.strict)
            throw Error(ErrorCode::input, text, "without --strict such entries are counted and left out");
        if (!invocation.quiet) print_diagnostic("warning", text);
    }
    return recording;
}

const Trace& choose_trace(const Recording& recording, std::optional<int> gpu) {
    if (recording.traces.empty())
        throw Error(ErrorCode::input, fmt::format("{}: no device has a history or segments", recording.path),
            "was recording enabled? see torch.cuda.memory._record_memory_history");
    if (!gpu)
        return *std::max_element(recording.traces.begin(), recording.traces.end(),
            [](const Trace& a, const Trace& b) { return a.buffers.size() < b.buffers.size(); });
    const auto found = std::find_if(
        recording.traces.begin(), recording.traces.end(), [&](const Trace& t) { return t.device == *gpu; });
    if (found != recording.traces.end()) return *found;
    std::vector<int> devices;
    for (const Trace& trace : recording.traces) devices.push_back(trace.device);
    throw Error(ErrorCode::input, fmt::format("{}: nothing of device {}", recording.path, *gpu),
        fmt::format("it holds device {}", fmt::join(devices, ", ")));
}

void PolicyChoice::add_options(CLI::App& command) {
    // Both kinds go into one list, so that the order of the command line is kept.
    command
        .add_option_function<std::string>(
            "-p,--policy", [this](const std::string& text) { asked.push_back(text); },
            "a policy; again for more (fragsim list policies)")
        ->type_name("NAME[:KEY=VALUE,...]")
        ->trigger_on_parse()
        ->group("Policies");
    command
        .add_option_function<std::string>(
            "--alloc-conf", [this](const std::string& text) { asked.push_back("conf=" + text); },
            "a policy as PYTORCH_CUDA_ALLOC_CONF sets it; again for more")
        ->type_name("STRING")
        ->trigger_on_parse()
        ->group("Policies");
}

void PolicyChoice::check() const {
    constexpr const char* kNewest =
        "2.14";  // knows the most keys; which ones the recording's version knows is seen later
    std::vector<std::string> warnings;
    for (const std::string& word : asked) {
        if (word.starts_with("conf="))
            policy_from_alloc_conf(std::string_view(word).substr(5), warnings, kNewest);
        else
            parse_policy_spec(word, policies());
    }
}

std::vector<PolicySpec> PolicyChoice::resolve(const Invocation& invocation, const Recording& recording) const {
    std::vector<PolicySpec> specs;
    std::vector<std::string> words = asked;
    if (words.empty()) words.push_back("conf=" + (recording.settings ? recording.settings->alloc_conf : ""));
    for (const std::string& word : words) {
        if (!word.starts_with("conf=")) {
            specs.push_back(parse_policy_spec(word, policies()));
            specs.back().assume("torch_version", recording.torch_version);
            continue;
        }
        std::vector<std::string> warnings;
        specs.push_back(policy_from_alloc_conf(std::string_view(word).substr(5), warnings, recording.torch_version));
        if (!invocation.quiet)
            for (const std::string& warning : warnings) print_diagnostic("note", "alloc conf: " + warning);
    }
    return specs;
}

namespace {

// "recorded" or "recorded:FACTOR".
double parse_pace(const std::string& text) {
    const std::string_view word = "recorded";
    const std::string_view rest = text.starts_with(word) ? std::string_view(text).substr(word.size()) : "?";
    if (rest.empty()) return 1;
    double factor = 0;
    const auto [end, fault] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), factor);
    if (!rest.starts_with(':') || fault != std::errc() || end != rest.data() + rest.size() || !(factor >= 0))
        throw Error(ErrorCode::usage, fmt::format("'{}' is no pace", text), "write recorded or recorded:0.5");
    return factor;
}

}  // namespace

void ReplayChoice::add_options(CLI::App& command, const char* report) {
    command.add_option("TRACE", traces, "trace files; - is standard input")->required()->type_name("");
    command.add_option("--gpu", gpu, "device whose history to take (the busiest one)")->type_name("N")->group("Replay");
    command
        .add_option("--capacity", capacity,
            "what the process may reserve (no bound); PyTorch's\npolicies take it as their memory fraction's limit")
        ->type_name("SIZE")
        ->group("Replay");
    command.add_option("--on-oom", on_oom, "skip the allocation and go on, or stop (skip)")
        ->check(CLI::IsMember({"skip", "stop"}).description(""))
        ->type_name("WHAT")
        ->group("Replay");
    command
        .add_option("--frees", frees,
            "when a free that waited for another stream counts:\nwhen requested, the policy then waits as "
            "PyTorch\ndoes, or only when it was completed (requested)")
        ->check(CLI::IsMember({"requested", "completed"}).description(""))
        ->type_name("WHEN")
        ->group("Replay");
    command
        .add_option(
            "--device", devices, "the host model, or a GPU: host, cuda, cuda:N (host);\nboth: they are compared")
        ->take_all()
        ->type_name("DEVICE")
        ->group("Replay");
    command
        .add_option(
            "--repeat", repetitions, "replay that many times more and report latencies\n(0 on the host, 3 on a GPU)")
        ->check(CLI::NonNegativeNumber.description(""))
        ->type_name("N")
        ->group("Replay");
    command
        .add_option(
            "--touch", touch, "on a GPU: write every buffer, or write it and verify\nit before it is freed (none)")
        ->check(CLI::IsMember({"none", "write", "verify"}).description(""))
        ->type_name("HOW")
        ->group("Replay");
    command
        .add_flag("--ballast", ballast,
            "on a GPU: really fill what exceeds the capacity, so\nthat the driver refuses, not the policy")
        ->group("Replay");
    command
        .add_option(
            "--cost-profile", cost_profile, "what driver calls cost, as calibrate writes it\n(an H200's, bundled)")
        ->type_name("FILE")
        ->group("Replay");
    command
        .add_option(
            "--pace", pace, "on a GPU: keep the recorded time between events,\ntimes FACTOR (as fast as possible)")
        ->type_name("recorded[:FACTOR]")
        ->group("Replay");
    command
        .add_option("--address-space", address_space,
            "of a fresh process, or the recorded one's as far as\nits segments show it (fresh)")
        ->check(CLI::IsMember({"fresh", "recorded"}).description(""))
        ->type_name("WHOSE")
        ->group("Replay");
    command.add_flag("--audit", audit, "check every placement and statistic independently;\nfindings give status 1")
        ->group("Replay");
    command.add_flag("--fail-on-oom", fail_on_oom, "status 1 if a request failed")->group("Replay");
    default_report = report;
    std::vector<std::string> names;
    for (const ReportInfo& info : fragsim::reports()) names.emplace_back(info.name);
    command
        .add_option(
            "--report", reports, fmt::format("{}\n(on stdout: {}); again for more", fmt::join(names, ", "), report))
        ->type_name("FORMAT[=FILE]")
        ->take_all()
        ->group("Output");
    command.add_flag("--json", json, "short for --report json")->group("Output");
}

RunOptions ReplayChoice::run_options() const {
    RunOptions options;
    if (!capacity.empty()) options.capacity = parse_size(capacity);
    options.on_oom = on_oom == "stop" ? OnOom::stop : OnOom::skip;
    options.frees = frees == "completed" ? Frees::completed : Frees::requested;
    options.audit = audit;
    options.touch = touch == "verify" ? TouchMode::verify : touch == "write" ? TouchMode::write : TouchMode::none;
    options.repetitions = repetitions;
    if (!pace.empty()) options.pace = parse_pace(pace);
    return options;
}

std::vector<DeviceChoice> ReplayChoice::device_choices() const {
    std::vector<DeviceChoice> choices;
    for (const std::string& text : devices) {
        DeviceChoice& choice = choices.emplace_back();
        if (text == "host") continue;
        choice.kind = DeviceChoice::Kind::cuda;
        choice.ballast = ballast;
        const std::string_view rest = std::string_view(text).substr(std::min<std::size_t>(4, text.size()));
        const auto [end, fault] =
            std::from_chars(rest.data() + !rest.empty(), rest.data() + rest.size(), choice.ordinal);
        const bool numbered = rest.starts_with(':') && fault == std::errc() && end == rest.data() + rest.size();
        if (!text.starts_with("cuda") || !(rest.empty() || numbered))
            throw Error(ErrorCode::usage, fmt::format("unknown device '{}'", text), "write host, cuda or cuda:N");
    }
    if (choices.empty()) choices.emplace_back();
    const bool cuda = std::any_of(
        choices.begin(), choices.end(), [](const DeviceChoice& c) { return c.kind == DeviceChoice::Kind::cuda; });
    if (!cuda && (ballast || !pace.empty() || touch != "none"))
        throw Error(ErrorCode::usage, "--touch, --ballast and --pace are for a GPU", "add --device cuda");
    if (ballast && capacity.empty())
        throw Error(ErrorCode::usage, "--ballast needs a capacity to leave", "add --capacity SIZE");
    return choices;
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
    add_inspect_command(app, invocation);
    add_replay_command(app, invocation);
    add_compare_command(app, invocation);
    add_verify_command(app, invocation);
    add_convert_command(app, invocation);
    add_calibrate_command(app, invocation);
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
