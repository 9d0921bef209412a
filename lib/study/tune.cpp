#include "lib/study/tune.hpp"

#include <algorithm>

#include "lib/core/parallel.hpp"

namespace fragsim {
namespace {

// How `a` compares in one goal: negative, it is better.
double compare(const Score& a, const Score& b, Goal goal) {
    switch (goal) {
        case Goal::survive:
            return a.failing != b.failing ? static_cast<double>(a.failing - b.failing)
                                          : static_cast<double>(a.ooms - b.ooms);
        case Goal::reserved:
            return a.reserved != b.reserved ? static_cast<double>(a.reserved - b.reserved)
                                            : static_cast<double>(a.reserved_sum - b.reserved_sum);
        case Goal::stall: return a.stall_ns - b.stall_ns;
    }
    return 0;
}

class Tuner {
public:
    explicit Tuner(const TuneTask& task) : task_(task) {
        for (const SettingKey& key : task.keys) unset_.push_back(static_cast<std::int64_t>(key.unset));
    }

    Tuning run() {
        const std::size_t standard = try_settings({""}).front();
        std::optional<std::size_t> in_force;
        if (task_.in_force) in_force = try_settings({*task_.in_force}).front();
        std::vector<std::size_t> folklore = try_settings(task_.folklore);
        try_settings(task_.others);

        for (const bool expandable : {false, true})
            for (std::size_t k = 0; k < task_.keys.size(); ++k)
                if (!expandable || task_.keys[k].with_expandable) search_key(k, unset_, expandable);
        search_jointly();
        for (const bool expandable : {false, true}) descend(expandable);

        tuning_.standard = standard;
        tuning_.in_force = in_force;
        tuning_.folklore = std::move(folklore);
        for (std::size_t i = 0; i < tuning_.tried.size(); ++i)
            if (is_better(i, tuning_.best)) tuning_.best = i;
        find_simplest();
        find_pareto();
        tuning_.exhausted = !affordable();
        return std::move(tuning_);
    }

private:
    // Everything known of one settings string.
    struct Known {
        std::size_t index;                          // in Tuning::tried
        std::vector<std::vector<SameCourse>> same;  // by run
    };

    bool affordable() const { return events_ < task_.price; }
    bool is_better(std::size_t a, std::size_t b) const {
        return better(tuning_.tried[a].score, tuning_.tried[b].score, task_.goals);
    }

    // Replays every trace under each setting not known yet. Indices into Tuning::tried.
    std::vector<std::size_t> try_settings(const std::vector<std::string>& confs) {
        std::vector<std::string> fresh;
        for (const std::string& conf : confs)
            if (!known_.contains(conf) && std::find(fresh.begin(), fresh.end(), conf) == fresh.end())
                fresh.push_back(conf);
        const std::size_t runs = task_.runs.size();
        std::vector<Trial> trials(fresh.size() * runs);
        for_each_index(trials.size(), task_.jobs, [&](std::size_t i) {
            const TuneTask::Run& run = task_.runs[i % runs];
            std::optional<PolicySpec> spec = task_.read(fresh[i / runs], run.torch_version);
            if (spec)
                trials[i] = try_policy(*run.trace, *spec, run.options);
            else
                trials[i].ooms = run.trace->ops;  // as bad as can be
        });
        for (std::size_t i = 0; i < fresh.size(); ++i) {
            Known known{tuning_.tried.size(), {}};
            Score score;
            for (std::size_t r = 0; r < runs; ++r) {
                Trial& trial = trials[i * runs + r];
                score.failing += !trial.survives();
                score.ooms += trial.ooms;
                score.reserved = std::max(score.reserved, trial.reserved_peak);
                score.reserved_sum += trial.reserved_peak;
                score.stall_ns += trial.driver_time_ns;
                score.driver_calls += trial.driver_calls;
                score.retries += trial.retries;
                events_ += static_cast<double>(trial.events);
                known.same.push_back(std::move(trial.same));
            }
            tuning_.tried.push_back({fresh[i], score});
            known_.emplace(fresh[i], std::move(known));
        }
        tuning_.replays += static_cast<std::int64_t>(trials.size());
        std::vector<std::size_t> indices;
        for (const std::string& conf : confs) indices.push_back(known_.at(conf).index);
        return indices;
    }

    // The points around one that was tried for which every replay would have gone the same way.
    Box decided_by(const GridPoint& point, const Known& known) const {
        Box box{point, point};
        for (std::size_t k = 0; k < task_.keys.size(); ++k) {
            const SettingKey& key = task_.keys[k];
            if (key.bytes.empty()) continue;
            Bytes above = 0, up_to = key.bytes.back();
            bool all = true;  // refused settings and other allocators say nothing
            for (const std::vector<SameCourse>& same : known.same) {
                const auto course = std::find_if(
                    same.begin(), same.end(), [&](const SameCourse& c) { return c.parameter == key.name; });
                all = all && course != same.end();
                if (!all) break;
                above = std::max(above, course->above);
                up_to = std::min(up_to, course->up_to);
            }
            if (!all) continue;
            const auto begin = key.bytes.begin();
            box.low[k] = std::min(point[k], std::upper_bound(begin, key.bytes.end(), above) - begin);
            box.high[k] = std::max(point[k], std::upper_bound(begin, key.bytes.end(), up_to) - begin - 1);
        }
        return box;
    }

    struct Searched {
        Cover cover;
        std::vector<std::pair<Box, std::size_t>> pieces;  // what was decided, and by which setting
        std::size_t best;
    };

    // Every point of `grid`, or as many as are affordable.
    Searched search(const Box& grid, bool expandable) {
        Searched searched{};
        const auto run = [&](const std::vector<GridPoint>& points) {
            std::vector<std::string> confs;
            for (const GridPoint& point : points) confs.push_back(task_.write(point, expandable));
            const std::vector<std::size_t> indices = try_settings(confs);
            std::vector<Box> boxes;
            for (std::size_t i = 0; i < points.size(); ++i) {
                boxes.push_back(decided_by(points[i], known_.at(confs[i])));
                searched.pieces.emplace_back(boxes.back(), indices[i]);
            }
            return boxes;
        };
        searched.cover = cover(grid, run, [&] { return affordable(); });
        return searched;
    }

    // One key, the others staying as in `around`. Returns the best point found.
    GridPoint search_key(std::size_t k, const GridPoint& around, bool expandable) {
        Box grid{around, around};
        grid.low[k] = 0;
        grid.high[k] = static_cast<std::int64_t>(task_.keys[k].values.size()) - 1;
        Searched searched = search(grid, expandable);
        if (around == unset_ && !expandable) remember_curve(k, searched);
        GridPoint best = around;
        std::size_t index = try_settings({task_.write(around, expandable)}).front();
        for (const auto& [box, tried] : searched.pieces)
            if (is_better(tried, index)) {
                index = tried;
                best[k] = box.low[k] + (box.high[k] - box.low[k]) / 2;
            }
        // The middle of what does the same is the safest to recommend.
        if (best[k] != around[k]) try_settings({task_.write(best, expandable)});
        return best;
    }

    void remember_curve(std::size_t k, const Searched& searched) {
        const SettingKey& key = task_.keys[k];
        KeySearch found{key.name + (key.part.empty() ? "" : ":" + key.part), searched.cover, {}};
        std::vector<CurvePiece> pieces;
        for (const auto& [box, tried] : searched.pieces)
            pieces.push_back({box.low[k], box.high[k], tuning_.tried[tried].score});
        std::sort(pieces.begin(), pieces.end(), [](const CurvePiece& a, const CurvePiece& b) { return a.low < b.low; });
        for (const CurvePiece& piece : pieces) {
            if (!found.curve.empty() && piece.high <= found.curve.back().high) continue;
            found.curve.push_back(
                {std::max(piece.low, found.curve.empty() ? 0 : found.curve.back().high + 1), piece.high, piece.score});
        }
        tuning_.keys.push_back(std::move(found));
    }

    // All keys that sizes are compared with at once. Only where a part of the price will do: else the time is better
    // spent on going down from the best.
    void search_jointly() {
        Box grid{unset_, unset_};
        bool any = false;
        for (std::size_t k = 0; k < task_.keys.size(); ++k)
            if (!task_.keys[k].bytes.empty()) {
                grid.low[k] = 0;
                grid.high[k] = static_cast<std::int64_t>(task_.keys[k].values.size()) - 1;
                any = true;
            }
        if (!any) return;
        const double price = events_ + (task_.price - events_) / 4;
        const auto run = [&](const std::vector<GridPoint>& points) {
            std::vector<std::string> confs;
            for (const GridPoint& point : points) confs.push_back(task_.write(point, false));
            const std::vector<std::size_t> indices = try_settings(confs);
            std::vector<Box> boxes;
            for (std::size_t i = 0; i < points.size(); ++i) {
                boxes.push_back(decided_by(points[i], known_.at(confs[i])));
                note_joint(points[i], indices[i]);
            }
            return boxes;
        };
        tuning_.jointly = cover(grid, run, [&] { return events_ < price; });
    }
    void note_joint(const GridPoint& point, std::size_t index) {
        if (!joint_best_ || is_better(index, *joint_best_)) joint_best_ = index, joint_point_ = point;
    }

    // From the best known point along each key in turn, until no key improves it.
    void descend(bool expandable) {
        GridPoint at = !expandable && joint_best_ ? joint_point_ : unset_;
        for (bool improved = true; improved && affordable();) {
            improved = false;
            for (std::size_t k = 0; k < task_.keys.size() && affordable(); ++k) {
                if (expandable && !task_.keys[k].with_expandable) continue;
                GridPoint next = search_key(k, at, expandable);
                if (next == at) continue;
                at = std::move(next);
                improved = true;
            }
        }
    }

    void find_simplest() {
        const Score& best = tuning_.tried[tuning_.best].score;
        const auto keys = [&](std::size_t i) {
            const std::string& conf = tuning_.tried[i].alloc_conf;
            return conf.empty() ? 0 : 1 + std::count(conf.begin(), conf.end(), ':');
        };
        tuning_.simplest = tuning_.best;
        for (std::size_t i = 0; i < tuning_.tried.size(); ++i) {
            const Score& score = tuning_.tried[i].score;
            if (score.ooms != best.ooms || score.failing != best.failing) continue;
            if (static_cast<double>(score.reserved) > 1.01 * static_cast<double>(best.reserved)) continue;
            const auto fewer = keys(i) - keys(tuning_.simplest);
            if (fewer < 0 || (fewer == 0 && is_better(i, tuning_.simplest))) tuning_.simplest = i;
        }
    }

    // Reserved bytes against stall, among those that fail least.
    void find_pareto() {
        std::vector<std::size_t> order;
        const Score& best = tuning_.tried[tuning_.best].score;
        std::int64_t failing = best.failing, ooms = best.ooms;
        for (const Candidate& candidate : tuning_.tried)
            if (std::pair(candidate.score.failing, candidate.score.ooms) < std::pair(failing, ooms))
                failing = candidate.score.failing, ooms = candidate.score.ooms;
        for (std::size_t i = 0; i < tuning_.tried.size(); ++i)
            if (tuning_.tried[i].score.failing == failing && tuning_.tried[i].score.ooms == ooms) order.push_back(i);
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return better(tuning_.tried[a].score, tuning_.tried[b].score, {Goal::reserved, Goal::stall});
        });
        double least_stall = 0;
        for (const std::size_t i : order) {
            const double stall = tuning_.tried[i].score.stall_ns;
            if (!tuning_.pareto.empty() && stall >= least_stall) continue;
            tuning_.pareto.push_back(i);
            least_stall = stall;
        }
    }

    const TuneTask& task_;
    GridPoint unset_;
    Tuning tuning_;
    std::map<std::string, Known> known_;
    double events_ = 0;
    std::optional<std::size_t> joint_best_;
    GridPoint joint_point_;
};

}  // namespace

bool better(const Score& a, const Score& b, const std::vector<Goal>& goals) {
    for (const Goal goal : goals)
        if (const double difference = compare(a, b, goal); difference != 0) return difference < 0;
    return false;
}

Tuning tune(const TuneTask& task) { return Tuner(task).run(); }

}  // namespace fragsim
