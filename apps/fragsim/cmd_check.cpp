// fragsim check: do the runs that a baseline lists still have its figures?
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "apps/fragsim/baseline_replay.hpp"
#include "apps/fragsim/cli.hpp"
#include "apps/fragsim/report_outputs.hpp"
#include "lib/core/error.hpp"
#include "lib/core/parallel.hpp"
#include "lib/report/baseline_file.hpp"

namespace fragsim {
namespace {

struct Options {
    std::string baseline;
    std::vector<std::string> traces, capacities, memory_limits, tolerances, reports;
    std::optional<int> gpu;
    PolicyChoice policy;
    int jobs = hardware_jobs();
    bool update = false, times = false, json = false;
};

bool has_limits(const Options& options) { return !options.capacities.empty() || !options.memory_limits.empty(); }

Tolerances read_tolerances(const std::vector<std::string>& words) {
    Tolerances tolerances;
    for (const std::string& word : words) {
        const std::size_t equals = word.find('=');
        const std::string key = word.substr(0, equals);
        const std::string text = equals == std::string::npos ? "" : word.substr(equals + 1);
        check_tolerance(key, text);
        set_tolerance(tolerances, key, text);
    }
    return tolerances;
}

// What holds for an entry: its own tolerances over the file's, the command line's over both.
Tolerances tolerances_of(const Baseline& baseline, const BaselineEntry& entry, const Tolerances& given) {
    Tolerances all = baseline.tolerances;
    for (const Tolerances* more : {&entry.tolerances, &given})
        for (const auto& [key, text] : *more) set_tolerance(all, key, text);
    return all;
}

// Today's figures beside those of an entry, in what is judged.
ComparedRun compare_entry(const std::string& baseline, const BaselineEntry& entry, const Replayed& replayed,
    const Tolerances& tolerances, bool times) {
    ComparedRun run{name_of(baseline, entry), {}, replayed.problems, {}};
    if (!replayed.figures) return run;
    RunFigures before = entry.figures, now = *replayed.figures;
    std::erase_if(before.metrics, [&](const Metric& m) { return is_judged(m.key, true) && !is_judged(m.key, times); });
    std::erase_if(now.metrics, [&](const Metric& m) {
        const bool listed = std::any_of(
            before.metrics.begin(), before.metrics.end(), [&](const Metric& other) { return other.key == m.key; });
        return !listed && !is_judged(m.key, times);
    });
    run.differences = compare_figures(before, now, tolerances);
    run.figures = std::move(now.metrics);
    return run;
}

Comparison empty_comparison(const Options& options, const Invocation& invocation) {
    Comparison comparison;
    comparison.tool_version = FRAGSIM_VERSION;
    comparison.argv = invocation.argv;
    comparison.command = "check";
    comparison.baseline = options.baseline;
    return comparison;
}

// Says everything that stood in the way, and what to do.
int refuse(const Comparison& comparison) {
    for (const std::string& problem : comparison.problems) print_diagnostic("error", problem);
    for (const ComparedRun& run : comparison.runs)
        for (const std::string& problem : run.problems)
            print_diagnostic("error", fmt::format("{}, {}: {}", run.run.trace, run.run.policy, problem));
    fmt::print(stderr,
        "hint: where such a change is meant, --update takes it over; an entry that is no longer wanted is "
        "deleted in {}\n",
        comparison.baseline);
    return 3;
}

// Leaves the entries of the traces that were named; what the baseline does not list is a problem.
void select(std::vector<BaselineEntry>& entries, const Options& options, Comparison& comparison) {
    if (options.traces.empty()) return;
    const auto is_of = [&](const BaselineEntry& entry, const std::string& trace) {
        return path_in_baseline(options.baseline, path_from_baseline(options.baseline, entry)) ==
               path_in_baseline(options.baseline, trace);
    };
    for (const std::string& trace : options.traces)
        if (std::none_of(entries.begin(), entries.end(), [&](const BaselineEntry& e) { return is_of(e, trace); }))
            comparison.problems.push_back(fmt::format("{}: not listed in {}", trace, options.baseline));
    std::erase_if(entries, [&](const BaselineEntry& entry) {
        return std::none_of(options.traces.begin(), options.traces.end(),
            [&](const std::string& trace) { return is_of(entry, trace); });
    });
}

int check(const Options& options, const Tolerances& given, const Invocation& invocation) {
    if (!options.policy.asked.empty() || has_limits(options) || options.gpu)
        throw Error(ErrorCode::usage, "--policy, --alloc-conf, --capacity, --memory-limit and --gpu say what --update adds",
            "without --update the baseline says what is checked");
    ComparisonOutputs outputs(options.reports, options.json, "table", invocation.force);
    const Baseline baseline = read_baseline(options.baseline);
    std::vector<BaselineEntry> entries = baseline.entries;
    Comparison comparison = empty_comparison(options, invocation);
    select(entries, options, comparison);

    TraceStore traces(invocation);
    const std::vector<Replayed> replayed = replay_entries(options.baseline, entries, traces, options.jobs);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        Replayed now = replayed[i];
        if (!now.sha256.empty() && now.sha256 != entries[i].sha256) {
            now.problems.push_back(fmt::format(
                "the trace is another one: its sha256 is {}, in the baseline {}", now.sha256, entries[i].sha256));
            now.figures.reset();
        }
        ComparedRun& run = comparison.runs.emplace_back(compare_entry(
            options.baseline, entries[i], now, tolerances_of(baseline, entries[i], given), options.times));
        for (const Difference& difference : run.differences)
            if (difference.missing())
                run.problems.push_back(fmt::format("metric {} is {}", difference.metric,
                    difference.baseline ? "no longer there" : "not in the baseline"));
    }
    outputs.write(comparison, invocation);
    if (comparison.problem_count() > 0) return refuse(comparison);
    return comparison.regressions() > 0 ? 1 : 0;
}

// Every capacity with every memory limit.
std::vector<std::pair<std::string, std::string>> asked_limits(const Options& options) {
    const auto or_none = [](std::vector<std::string> texts) {
        if (texts.empty()) texts.emplace_back("none");
        return texts;
    };
    std::vector<std::pair<std::string, std::string>> limits;
    for (const std::string& capacity : or_none(options.capacities))
        for (const std::string& memory_limit : or_none(options.memory_limits)) limits.emplace_back(capacity, memory_limit);
    return limits;
}

// The entries that the command line asks for, without figures.
std::vector<BaselineEntry> asked_entries(const Options& options, TraceStore& traces, const Invocation& invocation) {
    std::vector<BaselineEntry> entries;
    for (const std::string& trace : options.traces)
        for (const PolicySpec& spec : options.policy.resolve(invocation, traces.get(trace)))
            for (const auto& [capacity, memory_limit] : asked_limits(options)) {
                BaselineEntry entry;
                entry.trace = path_in_baseline(options.baseline, trace);
                entry.gpu = options.gpu;
                entry.policy = spec.label();
                if (capacity != "none") entry.capacity = capacity;
                if (memory_limit != "none") entry.memory_limit = memory_limit;
                if (std::none_of(entries.begin(), entries.end(), [&](const auto& e) { return same_run(e, entry); }))
                    entries.push_back(std::move(entry));
            }
    return entries;
}

int update(const Options& options, const Tolerances& given, const Invocation& invocation) {
    const bool whats_there = options.traces.empty();
    if (whats_there && (!options.policy.asked.empty() || has_limits(options) || options.gpu))
        throw Error(ErrorCode::usage, "--update has policies, limits or a device, but no traces",
            "give the traces too, or nothing to refresh what is listed");
    if (std::find(options.traces.begin(), options.traces.end(), "-") != options.traces.end())
        throw Error(ErrorCode::usage, "standard input cannot be in a baseline", "give the trace as a file");
    options.policy.check();
    for (const auto& [capacity, memory_limit] : asked_limits(options)) parse_limits(capacity, memory_limit);
    ComparisonOutputs outputs(options.reports, options.json, "table", invocation.force);
    OutputFile file(options.baseline, true);
    Baseline baseline;
    if (whats_there || std::filesystem::exists(options.baseline)) baseline = read_baseline(options.baseline);
    for (const auto& [key, text] : given) set_tolerance(baseline.tolerances, key, text);

    TraceStore traces(invocation);
    std::vector<BaselineEntry> entries = whats_there ? baseline.entries : asked_entries(options, traces, invocation);
    const std::vector<Replayed> replayed = replay_entries(options.baseline, entries, traces, options.jobs);
    Comparison comparison = empty_comparison(options, invocation);
    comparison.updated = true;
    const std::size_t before = baseline.entries.size();
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const auto old = std::find_if(
            baseline.entries.begin(), baseline.entries.end(), [&](const auto& e) { return same_run(e, entries[i]); });
        const bool added = old == baseline.entries.end();
        if (added) {
            ComparedRun& run = comparison.runs.emplace_back(
                ComparedRun{name_of(options.baseline, entries[i]), {}, replayed[i].problems, {}});
            if (replayed[i].figures) run.figures = replayed[i].figures->metrics;
            run.added = true;
        } else {
            comparison.runs.push_back(compare_entry(
                options.baseline, *old, replayed[i], tolerances_of(baseline, *old, given), options.times));
            if (old->sha256 != replayed[i].sha256 && replayed[i].figures && !invocation.quiet)
                print_diagnostic(
                    "note", path_from_baseline(options.baseline, *old) + ": the trace is another one than before");
        }
        if (!replayed[i].figures) continue;
        BaselineEntry& entry = added ? baseline.entries.emplace_back(entries[i]) : *old;
        entry.sha256 = replayed[i].sha256;
        entry.figures = kept_figures(*replayed[i].figures);
    }
    if (comparison.problem_count() > 0) {
        comparison.updated = false;
        outputs.write(comparison, invocation);
        return refuse(comparison);
    }
    file.write(write_baseline(baseline));
    outputs.write(comparison, invocation);
    file.commit(invocation.quiet);
    const std::size_t added = baseline.entries.size() - before, refreshed = entries.size() - added;
    if (!invocation.quiet)
        print_diagnostic(
            "note", fmt::format("{} added, {} refreshed, {} left as they were", added, refreshed, before - refreshed));
    return 0;
}

int run(const Options& options, const Invocation& invocation) {
    const Tolerances given = read_tolerances(options.tolerances);
    return options.update ? update(options, given, invocation) : check(options, given, invocation);
}

}  // namespace

void add_check_command(CLI::App& app, Invocation& invocation) {
    CLI::App* command = app.add_subcommand("check", "Did anything get worse against a baseline? For CI");
    auto options = std::make_shared<Options>();
    command->add_option("TRACE", options->traces, "only these of the baseline; with --update: what to add")
        ->type_name("");
    command->add_option("--baseline", options->baseline, "the figures to compare with")
        ->required()
        ->type_name("FILE")
        ->group("Baseline");
    command
        ->add_flag("--update", options->update,
            "write today's figures into the baseline: of the\ntraces given, else of everything it lists")
        ->group("Baseline");
    command
        ->add_option("--capacity", options->capacities,
            "with --update: what the card gives the process, or\nnone (none); again for more")
        ->type_name("SIZE")
        ->allow_extra_args(false)
        ->group("Baseline");
    command
        ->add_option("--memory-limit", options->memory_limits,
            "with --update: what set_per_process_memory_fraction\nallows, a share of the capacity, or none (none);\nagain for more")
        ->type_name("SIZE|SHARE")
        ->allow_extra_args(false)
        ->group("Baseline");
    command->add_option("--gpu", options->gpu, "with --update: device whose history to take (one that\nran out of memory, else the busiest one)")
        ->type_name("N")
        ->group("Baseline");
    command
        ->add_option("--tolerance", options->tolerances,
            "how far a figure may move: a part of the baseline (1%)\nor an amount (2MiB); again for more (nothing)")
        ->type_name("METRIC=VALUE")
        ->allow_extra_args(false)
        ->group("Comparison");
    command->add_flag("--times", options->times, "compare modelled driver times too")->group("Comparison");
    add_jobs_option(*command, options->jobs, "Comparison");
    std::vector<std::string> names;
    for (const ComparisonReportInfo& info : comparison_reports()) names.emplace_back(info.name);
    command
        ->add_option(
            "--report", options->reports, fmt::format("{}\n(on stdout: table); again for more", fmt::join(names, ", ")))
        ->type_name("FORMAT[=FILE]")
        ->allow_extra_args(false)
        ->group("Output");
    command->add_flag("--json", options->json, "short for --report json")->group("Output");
    options->policy.add_options(*command);
    invocation.add_options(*command);
    command->footer(
        "Exit status 0: nothing got worse, 1: something did, 3: something cannot be compared.\n"
        "Memory and counts are compared exactly. \"began at op\" is the first op after which a figure\nwas worse.\n\n"
        "examples:\n"
        "  fragsim check --baseline new.json --update run.pickle --policy caching --policy expandable\n"
        "  fragsim check --baseline base.json\n"
        "  fragsim check --baseline base.json --tolerance reserved_bytes.all.peak=1% --report junit=check.xml");
    command->callback(
        [options, &invocation] { invocation.run = [options, &invocation] { return run(*options, invocation); }; });
}

}  // namespace fragsim
