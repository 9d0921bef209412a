#include "lib/study/finalists.hpp"

#include <algorithm>

#include "lib/core/parallel.hpp"
#include "lib/study/min_capacity.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kLeast = 12, kMost = 32;  // settings, beside those that are always shown
constexpr double kReplaysPerCard = 40;          // about, in the searches of the smallest card
constexpr std::size_t kOfFront = 6;

class Finalists {
public:
    Finalists(const Tuning& tuning, const TuneTask& task) : tuning_(tuning), task_(task) {
        double events = 0;
        for (const TuneTask::Run& run : task.runs) events += static_cast<double>(run.trace->events.size());
        const double paid = task.price / 2 / (kReplaysPerCard * std::max(1.0, events));
        most_ = static_cast<std::size_t>(std::clamp(paid, double{kLeast}, double{kMost}));
    }

    std::vector<std::size_t> take() {
        for (const auto& index : {std::optional(tuning_.reference()), std::optional(tuning_.standard),
                 tuning_.expandable, std::optional(tuning_.optimum)})
            if (index) add(*index);
        for (const std::size_t i : tuning_.folklore) add(i);
        most_ += found_.size();
        // The objective's best of every size: what is simple needs to lose little to be recommended.
        for (int entries = 1; entries <= kSimpleEntries + 2; ++entries)
            for (const bool fraction : {false, true})
                add_best([&](const SettingTraits& traits) {
                    return traits.entries <= entries && traits.needs_memory_fraction == fraction;
                });
        for (const std::size_t i : tuning_.others) add(i);
        const std::size_t step = std::max<std::size_t>(1, tuning_.pareto.size() / kOfFront);
        for (std::size_t i = 0; i < tuning_.pareto.size(); i += step) add_new(tuning_.pareto[i]);
        // And the best of single keys, each course of the run once.
        std::vector<std::size_t> single;
        for (std::size_t i = 0; i < tuning_.tried.size(); ++i)
            if (tuning_.tried[i].traits.entries == 1) single.push_back(i);
        std::stable_sort(single.begin(), single.end(), [&](std::size_t a, std::size_t b) { return is_better(a, b); });
        for (const std::size_t i : single) add_new(i);
        return std::move(found_);
    }

private:
    bool is_better(std::size_t a, std::size_t b) const {
        return better(tuning_.tried[a].score, tuning_.tried[b].score, task_.goals);
    }
    void add(std::size_t index) {
        if (!tuning_.tried[index].score.refused && std::find(found_.begin(), found_.end(), index) == found_.end())
            found_.push_back(index);
    }
    // While there is room, and no setting that did exactly the same is there.
    void add_new(std::size_t index) {
        const Score& score = tuning_.tried[index].score;
        const auto same = [&](std::size_t i) {
            const Score& other = tuning_.tried[i].score;
            return other.ooms == score.ooms && other.reserved == score.reserved && other.stall_ns == score.stall_ns;
        };
        if (found_.size() < most_ && std::none_of(found_.begin(), found_.end(), same)) add(index);
    }
    template <class Belongs>
    void add_best(const Belongs& belongs) {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < tuning_.tried.size(); ++i)
            if (belongs(tuning_.tried[i].traits) && (!best || is_better(i, *best))) best = i;
        if (best) add(*best);
    }

    const Tuning& tuning_;
    const TuneTask& task_;
    std::size_t most_;
    std::vector<std::size_t> found_;
};

}  // namespace

bool TuneTask::limited() const {
    return std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.options.limits.bound().has_value(); });
}

RunOptions TuneTask::options_for(const Run& run, const Candidate& candidate) const {
    RunOptions options = run.options;
    if (candidate.traits.needs_memory_fraction && candidate.alloc_conf != in_force)
        options.limits.memory_limit = options.limits.bound();
    return options;
}

Standing standing_of(const Candidate& candidate, bool limited) {
    const Score& score = candidate.score;
    const std::optional<Bytes> card = candidate.card ? candidate.card->bytes : std::nullopt;
    // What is reserved by a run that lacks some of its memory says nothing.
    const bool by_card = limited || score.failing > 0;
    return {candidate.traits, score.refused, score.failing, by_card ? card : std::optional(score.reserved), card,
        score.reserved, score.stall_ns};
}

void choose_from(Tuning& tuning, const TuneTask& task) {
    const std::vector<std::size_t> finalists = Finalists(tuning, task).take();
    const std::size_t runs = task.runs.size();
    std::vector<std::optional<MinCapacity>> cards(finalists.size() * runs);
    for_each_index(cards.size(), task.jobs, [&](std::size_t i) {
        const TuneTask::Run& run = task.runs[i % runs];
        const Candidate& candidate = tuning.tried[finalists[i / runs]];
        if (const auto spec = task.read(candidate.alloc_conf, run.torch_version))
            cards[i] = find_min_capacity(*run.trace, *spec, task.options_for(run, candidate));
    });
    std::vector<Standing> standings;
    std::size_t reference = 0;
    for (std::size_t i = 0; i < finalists.size(); ++i) {
        Candidate& candidate = tuning.tried[finalists[i]];
        candidate.card.emplace();
        const auto first = cards.begin() + static_cast<std::ptrdiff_t>(i * runs);
        const auto last = first + static_cast<std::ptrdiff_t>(runs);
        if (std::all_of(first, last, [](const auto& card) { return card.has_value(); }))
            candidate.card->bytes = std::max_element(
                first, last, [](const auto& a, const auto& b) { return a->bytes < b->bytes; })->value().bytes;
        standings.push_back(standing_of(candidate, task.limited()));
        if (finalists[i] == tuning.reference()) reference = i;
    }
    const auto goal = std::find_if(task.goals.begin(), task.goals.end(), [](Goal g) { return g != Goal::survive; });
    const bool stall_first = goal != task.goals.end() && *goal == Goal::stall;
    const Recommendation chosen = recommend(standings, reference, {stall_first, task.small_stall_ns});
    tuning.best = finalists[chosen.best];
    if (chosen.simple) tuning.simple = finalists[*chosen.simple];
    if (chosen.extra) tuning.extra = finalists[*chosen.extra];
}

}  // namespace fragsim
