// Which setting is best for these runs? Not a coarse grid: a run says for which other settings it would have gone the
// same way (SameCourse), so that a few hundred runs decide every value there is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/policy/setting_key.hpp"
#include "lib/policy/torch_program.hpp"
#include "lib/study/cover.hpp"
#include "lib/study/score.hpp"
#include "lib/study/trial.hpp"

namespace fragsim {

// The values of one key that do the same, nothing else being set.
struct CurvePiece {
    std::int64_t low, high;  // indices into the key's values
    Score score;
};

struct KeySearch {
    std::size_t key;                // index into TuneTask::keys
    std::string name;               // with its part, if it has one
    Cover cover;                    // of its values, nothing else being set
    std::vector<CurvePiece> curve;  // ascending
};

struct Tuning {
    std::vector<Candidate> tried;  // distinct settings, in a fixed order
    // Indices into it.
    std::size_t standard = 0;                 // PyTorch's default
    std::optional<std::size_t> expandable;    // expandable segments and nothing else; none: some version refuses them
    std::optional<std::size_t> in_force;      // none: the traces were recorded under different settings
    std::size_t optimum = 0;                  // the objective's, as far as it was searched, whatever that costs
    std::size_t best = 0;                     // what is recommended; what is in force where nothing is worth a change
    std::optional<std::size_t> simple;        // the best of a few keys
    std::optional<std::size_t> extra;         // better still than `best`, but needs a memory fraction
    std::vector<std::size_t> pareto;      // of those that carry every run: less reserved for more stall
    std::vector<std::size_t> folklore;    // the values that everybody tries, ascending
    std::vector<std::size_t> others;      // TuneTask::others
    std::vector<KeySearch> keys;
    Cover jointly;  // the keys that sizes are compared with, all together
    std::int64_t replays = 0;
    bool exhausted = false;  // the price was paid before the search had ended

    // What every recommendation is compared with: what is in force, else the default.
    std::size_t reference() const { return in_force.value_or(standard); }
};

struct TuneTask {
    struct Run {
        const Trace* trace;
        RunOptions options;  // limits, address space
        std::string torch_version;
    };
    std::vector<Run> runs;
    std::vector<SettingKey> keys;
    std::vector<std::string> folklore;  // settings
    std::vector<std::string> others;    // settings to try besides, such as another backend
    std::string expandable = "expandable_segments:True";
    std::optional<std::string> in_force;
    TorchProgram program;  // of all traces: the oldest version
    double small_stall_ns = 1e6;  // in all runs together
    std::vector<Goal> goals{Goal::survive, Goal::reserved, Goal::stall};
    double price = 4e8;  // events to replay at most, about
    int jobs = 1;

    // The settings string for a point of the keys' grid.
    std::function<std::string(const GridPoint& point, bool expandable)> write;
    // The policy it chooses, for a version of PyTorch; none: that version refuses it.
    std::function<std::optional<PolicySpec>(const std::string& alloc_conf, const std::string& torch_version)> read;
    // What the string is like, as that version reads it; asked of strings that it does not refuse.
    std::function<SettingTraits(const std::string& alloc_conf, const std::string& torch_version)> traits;

    // What a setting is replayed under: one that needs a memory fraction and is not in force, under one of the card's size.
    RunOptions options_for(const Run& run, const Candidate& candidate) const;
    // Is there a limit, so that the smallest card is what counts and not what is reserved?
    bool limited() const;
};

Tuning tune(const TuneTask& task);

}  // namespace fragsim
