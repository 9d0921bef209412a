// Which setting is best for these runs? Not a coarse grid: a run says for which other settings it would have gone the
// same way (SameCourse), so that a few hundred runs decide every value there is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/policy/setting_key.hpp"
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
    std::vector<Candidate> tried;        // distinct settings, in a fixed order
    std::size_t best = 0, standard = 0;  // indices; `standard` is PyTorch's default
    std::size_t simplest = 0;  // the fewest keys that survive as well and lose 1 % at most in the goal after that
    std::optional<std::size_t> in_force;  // index; none: the traces were recorded under different settings
    std::vector<std::size_t> pareto;      // of those that do best in survival: less reserved for more stall
    std::vector<std::size_t> folklore;    // the values that everybody tries, ascending
    std::vector<KeySearch> keys;
    Cover jointly;  // the keys that sizes are compared with, all together
    std::int64_t replays = 0;
    bool exhausted = false;  // the price was paid before the search had ended
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
    std::optional<std::string> in_force;
    std::vector<Goal> goals{Goal::survive, Goal::reserved, Goal::stall};
    double price = 4e8;  // events to replay at most, about
    int jobs = 1;

    // The settings string for a point of the keys' grid.
    std::function<std::string(const GridPoint& point, bool expandable)> write;
    // The policy it chooses, for a version of PyTorch; none: that version refuses it.
    std::function<std::optional<PolicySpec>(const std::string& alloc_conf, const std::string& torch_version)> read;
};

Tuning tune(const TuneTask& task);

}  // namespace fragsim
