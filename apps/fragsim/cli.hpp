// The command line: options that several commands share, and what main needs to run one of them. CLI11 stays in apps/.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/fragsim/terminal.hpp"
#include "lib/core/limits.hpp"
#include "lib/policy/policy.hpp"
#include "lib/study/run.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

// Filled while the command line is read.
struct Invocation {
    std::vector<std::string> argv;  // without the program's name
    std::function<int()> run;       // the chosen command; returns the exit status
    ColorMode color = ColorMode::automatic;
    bool quiet = false, strict = false, force = false;

    // `-q`, `--color`, `--strict`, `--force`: the same everywhere.
    void add_options(CLI::App& command);
};

// Reads a trace with a progress line; prints what was doubtful, which --strict makes an error.
Recording load(const Invocation& invocation, const std::string& path, bool hash);

// The trace of device `gpu`; none asked for: the one with the most allocations, of those that ran out of memory if any
// did. Throws Error(input).
const Trace& choose_trace(const Recording& recording, std::optional<int> gpu);
// The same, and it has a history to replay.
const Trace& choose_history(const Recording& recording, std::optional<int> gpu);

// Options that mean the same everywhere. `group`: the heading in the help.
void add_gpu_option(CLI::App& command, std::optional<int>& gpu, const char* group);
void add_jobs_option(CLI::App& command, int& jobs, const char* group);

// --capacity and --memory-limit.
struct LimitChoice {
    std::string capacity, memory_limit;

    // `inferred`: commands that read them off a recording that ran out of memory, if none is given.
    void add_options(CLI::App& command, const char* group, bool inferred);
    bool given() const { return !capacity.empty() || !memory_limit.empty(); }
    Limits limits() const { return parse_limits(capacity, memory_limit); }  // throws Error(usage)
};

// Which policies to run, in the order given on the command line.
struct PolicyChoice {
    std::vector<std::string> asked;  // "caching:..." or "conf=..." for --alloc-conf

    void add_options(CLI::App& command);
    // Refuses what no recording could make right, before any is read. Throws Error(usage).
    void check() const;
    // Nothing asked: as the recording was made, else PyTorch's defaults.
    std::vector<PolicySpec> resolve(const Invocation& invocation, const Recording& recording) const;
};

// The policy that the recording was made under, PyTorch's default where it does not say. None: its settings are not
// understood.
std::optional<PolicySpec> policy_of(const Recording& recording);

// Options of commands that replay.
struct ReplayChoice {
    std::vector<std::string> traces;
    std::optional<int> gpu;
    LimitChoice limits;
    std::string on_oom = "skip", frees = "requested", address_space = "fresh", touch = "none", pace;
    std::string cost_profile;          // file; none: the bundled one
    std::vector<std::string> devices;  // "host", "cuda", "cuda:N"; none: the host model
    int repetitions = 0;
    bool json = false, audit = false, fail_on_oom = false, ballast = false;
    std::vector<std::string> reports;  // "NAME" to stdout, "NAME=FILE"
    std::string default_report;        // on stdout when none of `reports` goes there

    void add_options(CLI::App& command, const char* default_report);
    RunOptions run_options() const;                    // without the device
    std::vector<DeviceChoice> device_choices() const;  // at least one
};

// Each in its own cmd_NAME.cpp.
void add_explain_command(CLI::App& app, Invocation& invocation);
void add_inspect_command(CLI::App& app, Invocation& invocation);
void add_replay_command(CLI::App& app, Invocation& invocation);
void add_compare_command(CLI::App& app, Invocation& invocation);
void add_sweep_command(CLI::App& app, Invocation& invocation);
void add_check_command(CLI::App& app, Invocation& invocation);
void add_verify_command(CLI::App& app, Invocation& invocation);
void add_convert_command(CLI::App& app, Invocation& invocation);
void add_calibrate_command(CLI::App& app, Invocation& invocation);
void add_tune_command(CLI::App& app, Invocation& invocation);
void add_list_command(CLI::App& app, Invocation& invocation);

// Parses, runs, returns the exit status. Throws Error.
int run_command_line(int argc, char** argv);

}  // namespace fragsim
