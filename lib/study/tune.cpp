#include "lib/study/tune.hpp"

#include <algorithm>
#include <map>

#include "lib/core/parallel.hpp"
#include "lib/study/finalists.hpp"

namespace fragsim {
namespace {

class Tuner {
public:
    explicit Tuner(const TuneTask& task) : task_(task) {
        for (const SettingKey& key : task.keys) unset_.push_back(static_cast<std::int64_t>(key.unset));
    }

    Tuning run() {
        tuning_.standard = try_settings({""}).front();
        if (task_.in_force) tuning_.in_force = try_settings({*task_.in_force}).front();
        const std::size_t expandable = try_settings({task_.expandable}).front();
        if (!tuning_.tried[expandable].score.refused) tuning_.expandable = expandable;
        tuning_.folklore = try_settings(task_.folklore);
        tuning_.others = try_settings(task_.others);

        GridPoint start = unset_;
        const auto start_from = [&](const GridPoint& point) {
            if (is_better(try_point(point, false), try_point(start, false))) start = point;
        };
        for (std::size_t k = 0; k < task_.keys.size(); ++k) {
            const Searched searched = search_key(k, unset_, false);
            remember_curve(k, searched);
            start_from(searched.best(*this, unset_));
        }
        start_from(search_jointly().best(*this, unset_));
        descend(start, false);
        descend(unset_, true);

        for (std::size_t i = 0; i < tuning_.tried.size(); ++i)
            if (is_better(i, tuning_.optimum)) tuning_.optimum = i;
        tuning_.pareto = pareto_front(tuning_.tried);
        tuning_.exhausted = !affordable();
        choose_from(tuning_, task_);
        return std::move(tuning_);
    }

private:
    // Everything known of one settings string.
    struct Known {
        std::size_t index;                          // in Tuning::tried
        std::vector<std::vector<SameCourse>> same;  // by run
    };

    // What a search has decided, and by which point.
    struct Piece {
        Box box;
        GridPoint point;
        std::size_t tried;  // in Tuning::tried
    };
    struct Searched {
        Cover cover;
        std::vector<Piece> pieces;

        // The point of the best piece; `otherwise` if there is none.
        GridPoint best(const Tuner& tuner, const GridPoint& otherwise) const {
            const auto better_piece = [&](const Piece& a, const Piece& b) { return tuner.is_better(a.tried, b.tried); };
            const auto found = std::min_element(pieces.begin(), pieces.end(), better_piece);
            return found == pieces.end() ? otherwise : found->point;
        }
    };

    bool affordable() const { return events_ < task_.price; }
    // What needs a memory fraction is no way to go on from: it is an extra at most.
    bool is_better(std::size_t a, std::size_t b) const {
        const Candidate &left = tuning_.tried[a], &right = tuning_.tried[b];
        if (left.traits.needs_memory_fraction != right.traits.needs_memory_fraction)
            return right.traits.needs_memory_fraction;
        return better(left.score, right.score, task_.goals);
    }
    std::size_t try_point(const GridPoint& point, bool expandable) {
        return try_settings({task_.write(point, expandable)}).front();
    }

    // Replays every trace under each setting not known yet. Indices into Tuning::tried.
    std::vector<std::size_t> try_settings(const std::vector<std::string>& confs) {
        std::vector<std::string> fresh;
        for (const std::string& conf : confs)
            if (!known_.contains(conf) && std::find(fresh.begin(), fresh.end(), conf) == fresh.end())
                fresh.push_back(conf);
        const std::size_t runs = task_.runs.size();
        std::vector<Candidate> candidates;
        for (const std::string& conf : fresh) candidates.push_back(candidate_of(conf));
        std::vector<std::optional<Trial>> trials(fresh.size() * runs);
        for_each_index(trials.size(), task_.jobs, [&](std::size_t i) {
            const TuneTask::Run& run = task_.runs[i % runs];
            if (const auto spec = task_.read(fresh[i / runs], run.torch_version))
                trials[i] = try_policy(*run.trace, *spec, task_.options_for(run, candidates[i / runs]));
        });
        for (std::size_t i = 0; i < fresh.size(); ++i) {
            Known known{tuning_.tried.size(), {}};
            Score& score = candidates[i].score;
            for (std::size_t r = 0; r < runs; ++r) {
                std::optional<Trial>& trial = trials[i * runs + r];
                if (!trial) continue;
                score.failing += !trial->survives();
                score.ooms += trial->ooms;
                score.left_out += trial->left_out;
                score.reserved = std::max(score.reserved, trial->reserved_peak);
                score.reserved_sum += trial->reserved_peak;
                score.stall_ns += trial->driver_time_ns;
                score.driver_calls += trial->driver_calls;
                score.retries += trial->retries;
                events_ += static_cast<double>(trial->events);
                known.same.push_back(std::move(trial->same));
                ++tuning_.replays;
            }
            if (score.refused) known.same.clear();
            tuning_.tried.push_back(std::move(candidates[i]));
            known_.emplace(fresh[i], std::move(known));
        }
        std::vector<std::size_t> indices;
        for (const std::string& conf : confs) indices.push_back(known_.at(conf).index);
        return indices;
    }

    // Not yet tried.
    Candidate candidate_of(const std::string& conf) const {
        Candidate candidate{conf, {}, {}};
        for (const TuneTask::Run& run : task_.runs)
            candidate.score.refused = candidate.score.refused || !task_.read(conf, run.torch_version);
        if (!candidate.score.refused) candidate.traits = task_.traits(conf, task_.runs.front().torch_version);
        return candidate;
    }

    // The points around one that was tried for which every replay would have gone the same way.
    Box decided_by(const GridPoint& point, const Known& known) const {
        Box box{point, point};
        for (std::size_t k = 0; k < task_.keys.size(); ++k) {
            const SettingKey& key = task_.keys[k];
            if (key.bytes.empty() || known.same.empty()) continue;
            Bytes above = std::max<Bytes>(0, floor_of(key, point) - 1), up_to = key.bytes.back();
            bool all = true;  // other allocators say nothing
            for (const std::vector<SameCourse>& same : known.same) {
                const auto course = std::find_if(
                    same.begin(), same.end(), [&](const SameCourse& c) { return c.parameter == key.name; });
                all = all && course != same.end();
                if (!all) break;
                above = std::max(above, course->above);
                up_to = std::min(up_to, course->up_to);
            }
            const auto begin = key.bytes.begin();
            const std::int64_t low = std::upper_bound(begin, key.bytes.end(), above) - begin,
                               high = std::upper_bound(begin, key.bytes.end(), up_to) - begin - 1;
            // A value that is not set and stands for another key's lies outside of what its bytes say.
            if (!all || point[k] < low || point[k] > high) continue;
            box.low[k] = low;
            box.high[k] = high;
        }
        return box;
    }

    // Values of `key` below this are refused at `point`: the value there of the key that bounds it. Bytes; 0: none.
    Bytes floor_of(const SettingKey& key, const GridPoint& point) const {
        for (std::size_t k = 0; k < task_.keys.size() && !key.floor.empty(); ++k)
            if (task_.keys[k].name == key.floor) {
                const std::string& value = task_.keys[k].values[static_cast<std::size_t>(point[k])];
                return value.empty() ? 0 : std::stol(value) * kMiB;
            }
        return 0;
    }

    // Every point of `grid`, or as many as `price` (of all events so far) pays for.
    Searched search(const Box& grid, bool expandable, double price) {
        Searched searched{};
        const auto run = [&](const std::vector<GridPoint>& points) {
            std::vector<std::string> confs;
            for (const GridPoint& point : points) confs.push_back(task_.write(point, expandable));
            const std::vector<std::size_t> indices = try_settings(confs);
            std::vector<Box> boxes;
            for (std::size_t i = 0; i < points.size(); ++i) {
                boxes.push_back(decided_by(points[i], known_.at(confs[i])));
                searched.pieces.push_back({boxes.back(), points[i], indices[i]});
            }
            return boxes;
        };
        searched.cover = cover(grid, run, [&] { return events_ < price; });
        return searched;
    }

    // One key, the others staying as in `around`.
    Searched search_key(std::size_t k, const GridPoint& around, bool expandable) {
        Box grid{around, around};
        grid.low[k] = 0;
        grid.high[k] = static_cast<std::int64_t>(task_.keys[k].values.size()) - 1;
        Searched searched = search(grid, expandable, task_.price);
        // The middle of what does the same is the safest to recommend.
        for (Piece& piece : searched.pieces) {
            GridPoint middle = piece.point;
            middle[k] = piece.box.low[k] + (piece.box.high[k] - piece.box.low[k]) / 2;
            if (middle == piece.point || piece.point != searched.best(*this, around)) continue;
            if (const std::size_t tried = try_point(middle, expandable); !is_better(piece.tried, tried))
                piece.point = middle, piece.tried = tried;
        }
        return searched;
    }

    void remember_curve(std::size_t k, const Searched& searched) {
        const SettingKey& key = task_.keys[k];
        KeySearch found{k, key.name + (key.part.empty() ? "" : ":[" + key.part + ":N]"), searched.cover, {}};
        std::vector<CurvePiece> pieces;
        for (const Piece& piece : searched.pieces)
            pieces.push_back({piece.box.low[k], piece.box.high[k], tuning_.tried[piece.tried].score});
        std::sort(pieces.begin(), pieces.end(), [](const CurvePiece& a, const CurvePiece& b) { return a.low < b.low; });
        for (const CurvePiece& piece : pieces) {
            if (!found.curve.empty() && piece.high <= found.curve.back().high) continue;
            found.curve.push_back(
                {std::max(piece.low, found.curve.empty() ? 0 : found.curve.back().high + 1), piece.high, piece.score});
        }
        tuning_.keys.push_back(std::move(found));
    }

    // All keys that sizes are compared with at once, for a part of the price: the rest is better spent on going down
    // from the best.
    Searched search_jointly() {
        Box grid{unset_, unset_};
        bool any = false;
        for (std::size_t k = 0; k < task_.keys.size(); ++k) {
            if (task_.keys[k].bytes.empty()) continue;
            grid.low[k] = 0;
            grid.high[k] = static_cast<std::int64_t>(task_.keys[k].values.size()) - 1;
            any = true;
        }
        if (!any) return {};
        Searched searched = search(grid, false, events_ + (task_.price - events_) / 4);
        tuning_.jointly = searched.cover;
        return searched;
    }

    // From `at` along each key in turn, until no key improves it.
    void descend(GridPoint at, bool expandable) {
        for (bool improved = true; improved && affordable();) {
            improved = false;
            for (std::size_t k = 0; k < task_.keys.size() && affordable(); ++k) {
                if (expandable && !task_.keys[k].with_expandable) continue;
                GridPoint next = search_key(k, at, expandable).best(*this, at);
                if (!is_better(try_point(next, expandable), try_point(at, expandable))) continue;
                at = std::move(next);
                improved = true;
            }
        }
    }

    const TuneTask& task_;
    GridPoint unset_;
    Tuning tuning_;
    std::map<std::string, Known> known_;
    double events_ = 0;
};

}  // namespace

Tuning tune(const TuneTask& task) { return Tuner(task).run(); }

}  // namespace fragsim
