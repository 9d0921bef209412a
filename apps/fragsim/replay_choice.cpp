#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "apps/fragsim/cli.hpp"
#include "lib/core/error.hpp"
#include "lib/report/report.hpp"

namespace fragsim {

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

// In lines that a help text has room for.
std::string report_names() {
    std::string names;
    std::size_t line = 0;  // where the last one begins
    for (const ReportInfo& info : reports()) {
        if (!names.empty()) names += ",";
        const bool full = names.size() + 1 + info.name.size() - line > 52;
        if (!names.empty()) names += full ? '\n' : ' ';
        if (full) line = names.size();
        names += info.name;
    }
    return names;
}

}  // namespace

void ReplayChoice::add_options(CLI::App& command, const char* report) {
    command.add_option("TRACE", traces, "trace files; - is standard input")->required()->type_name("");
    add_gpu_option(command, gpu, "Replay");
    limits.add_options(command, "Replay", false);
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
        ->allow_extra_args(false)
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
    command.add_option("--report", reports, fmt::format("{}\n(on stdout: {}); again for more", report_names(), report))
        ->type_name("FORMAT[=FILE]")
        ->take_all()
        ->allow_extra_args(false)
        ->group("Output");
    command.add_flag("--json", json, "short for --report json")->group("Output");
}

RunOptions ReplayChoice::run_options() const {
    RunOptions options;
    options.limits = limits.limits();
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
    if (ballast && limits.capacity.empty())
        throw Error(ErrorCode::usage, "--ballast needs a capacity to leave", "add --capacity SIZE");
    return choices;
}

}  // namespace fragsim
