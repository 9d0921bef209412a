// Two sides of the same runs, figure by figure: what got worse, by how much, and from which op on. `check` compares a
// baseline with today's replays, `compare` two stored results; both with this.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/metrics/catalog.hpp"
#include "lib/metrics/courses.hpp"
#include "lib/study/run.hpp"

namespace fragsim {

// Which run it is, for people.
struct RunName {
    std::string trace;  // its path
    std::optional<int> gpu;
    std::string policy;  // as the user would write it
    Limits limits;
    std::string device = "host";
};

// What a run is compared by.
struct RunFigures {
    struct OomAt {
        std::uint32_t op;
        Bytes requested;
        std::string cause;
    };
    std::vector<Metric> metrics;
    std::vector<OomAt> ooms;  // by op; the first ones where there are more
    std::int64_t oom_count = 0;
    std::vector<RecordedOomAnswer> recorded_ooms;
    std::vector<Course> courses;  // may be empty
};
RunFigures figures_of(const Result& result);

// Does `check` look at the metric? Those that have a better direction, and what the trace itself asks for: where that
// changes, the others are figures of another program. Modelled times only when asked for.
bool is_judged(std::string_view key, bool times);

// How far a figure may be from its baseline and still count as the same.
struct Tolerance {
    double amount = 0;
    bool relative = false;  // to the baseline, which allows nothing where that is 0

    double allowance(double baseline) const;
};
// "1%", or an amount in the metric's unit: "2MiB", "3", "0.01", "5000" (ns). Throws Error(usage).
Tolerance parse_tolerance(const MetricInfo& metric, std::string_view text);
// The same for a metric by its key, which has to be known. Throws Error(usage).
void check_tolerance(const std::string& key, std::string_view text);

using Tolerances = std::vector<std::pair<std::string, std::string>>;  // metric, text; each metric once
// Adds or replaces.
void set_tolerance(Tolerances& tolerances, const std::string& key, const std::string& text);

enum class Judgement { same, better, worse, changed };  // changed: neither direction is better
const char* name(Judgement verdict);

// A figure that differs, or that only one side has.
struct Difference {
    std::string metric;  // a key of the catalog, or one of the three below
    std::optional<Metric> baseline, candidate;
    Judgement verdict = Judgement::same;
    bool within_tolerance = false;
    std::optional<double> change;  // (candidate - baseline) / baseline; none where the baseline is 0 or missing
    std::optional<OpRange> began;  // worse: the op after which it first was

    bool missing() const { return !baseline || !candidate; }
    // Worse or changed beyond its tolerance.
    bool regression() const {
        return !missing() && !within_tolerance && (verdict == Judgement::worse || verdict == Judgement::changed);
    }
    bool improvement() const { return !missing() && !within_tolerance && verdict == Judgement::better; }
};
// Counts that are 0 in the baseline: requests that failed at ops where none failed before; of the requests that failed
// in the recorded run, those that were served and no longer are, and the other way round.
inline constexpr const char* kNewOoms = "ooms.new";
inline constexpr const char* kNewlyRefused = "recorded_ooms.newly_refused";
inline constexpr const char* kNewlyServed = "recorded_ooms.newly_served";

// In the order of the baseline's metrics. Ratios and times that agree to nine digits are the same: their last digits
// depend on the machine. `tolerances` are valid.
std::vector<Difference> compare_figures(
    const RunFigures& baseline, const RunFigures& candidate, const Tolerances& tolerances = {});

struct ComparedRun {
    RunName run;
    std::vector<Difference> differences;
    std::vector<std::string> problems;  // why it could not be compared, or only in part
    std::vector<Metric> figures;        // of the candidate
    bool added = false;                 // the baseline had nothing of it

    bool regression() const;   // some difference is one
    bool improvement() const;  // none is a regression, and some are for the better
};

// What a command found out.
struct Comparison {
    std::string tool_version;
    std::vector<std::string> argv;
    std::string command;                // "check" or "compare"
    std::string baseline, candidate;    // files; no candidate file: today's replay
    bool updated = false;               // the baseline now has the candidate's figures
    std::vector<ComparedRun> runs;      // in the baseline's order
    std::vector<std::string> problems;  // of no run in particular

    std::size_t regressions() const, improvements() const;  // runs
    std::size_t with_problems() const;                      // runs
    std::size_t problem_count() const;                      // all of them
};

}  // namespace fragsim
