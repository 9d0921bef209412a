// The tuner against brute force: every value of every key that sizes are compared with, replayed one by one.
#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.hpp"
#include "lib/study/tune.hpp"
#include "policies/pytorch/setting_keys.hpp"
#include "policies/pytorch/setting_traits.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/small_programs.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

class Task {
public:
    explicit Task(std::vector<Trace> traces, std::optional<Bytes> capacity, const std::vector<std::string>& only = {})
        : traces_(std::move(traces)) {
        for (const Trace& trace : traces_) {
            task.runs.push_back({&trace, {}, "2.11"});
            task.runs.back().options.limits.memory_limit = capacity;
        }
        for (SettingKey& key : pytorch::setting_keys("2.11", capacity.has_value(), capacity, 64 * kMiB))
            if (only.empty() || std::find(only.begin(), only.end(), key.name + key.part) != only.end())
                task.keys.push_back(std::move(key));
        task.write = [this](const GridPoint& point, bool expandable) {
            return pytorch::alloc_conf_of(task.keys, point, expandable);
        };
        task.read = [](const std::string& conf, const std::string& version) { return try_alloc_conf(conf, version); };
        task.traits = [](const std::string& conf, const std::string& version) {
            SettingTraits traits = pytorch::setting_traits(conf, version);
            traits.needs_memory_fraction = false;  // as under a memory fraction
            return traits;
        };
        task.price = 1e12;
    }
    Task(const Task&) = delete;

    Score score(const GridPoint& point) const {
        Score score;
        const auto spec = try_alloc_conf(task.write(point, false), "2.11");
        score.refused = !spec;
        if (!spec) return score;
        for (const TuneTask::Run& run : task.runs) {
            const Trial trial = try_policy(*run.trace, *spec, run.options);
            score.failing += !trial.survives();
            score.ooms += trial.ooms;
            score.left_out += trial.left_out;
            score.reserved = std::max(score.reserved, trial.reserved_peak);
            score.reserved_sum += trial.reserved_peak;
            score.stall_ns += trial.driver_time_ns;
        }
        return score;
    }
    GridPoint unset() const {
        GridPoint point;
        for (const SettingKey& key : task.keys) point.push_back(static_cast<std::int64_t>(key.unset));
        return point;
    }

    TuneTask task;

private:
    std::vector<Trace> traces_;
};

bool same(const Score& a, const Score& b) {
    return a.refused == b.refused && a.failing == b.failing && a.ooms == b.ooms && a.reserved == b.reserved &&
           a.reserved_sum == b.reserved_sum && a.stall_ns == b.stall_ns;
}

// Somewhat more than what is live at once: some settings fail and some do not.
Bytes tight_capacity(const Trace& trace) {
    Bytes live = 0, peak = 0;
    for (const Event event : trace.events) {
        if (event.kind() == EventKind::alloc) peak = std::max(peak, live += trace.buffers[event.subject].requested);
        if (event.kind() == EventKind::free) live -= trace.buffers[event.subject].requested;
    }
    return round_up(peak + peak / 8, 2 * kMiB);
}

}  // namespace

TEST_CASE("every value of a single key does what the search says", "[differential][tune]") {
    int values = 0, pieces = 0;
    for (std::uint32_t seed = 1; seed <= 16; ++seed) {
        std::vector<Trace> traces;
        traces.push_back(small_program(seed));
        if (seed % 4 == 0) traces.push_back(small_program(seed + 100, 2));  // one setting for both
        const std::optional<Bytes> capacity = seed % 2 == 0 ? std::optional(tight_capacity(traces[0])) : std::nullopt;
        const Task brute(std::move(traces), capacity);
        const Tuning tuning = tune(brute.task);
        REQUIRE(tuning.keys.size() == brute.task.keys.size());
        for (std::size_t k = 0; k < tuning.keys.size(); ++k) {
            const KeySearch& search = tuning.keys[k];
            INFO("seed " << seed << ", " << search.name);
            CHECK(search.cover.complete);
            std::int64_t next = 0;
            std::string wrong;
            for (const CurvePiece& piece : search.curve) {
                CHECK(piece.low == next);
                next = piece.high + 1;
                pieces += !brute.task.keys[k].bytes.empty();
                for (std::int64_t value = piece.low; value <= piece.high; ++value) {
                    values += !brute.task.keys[k].bytes.empty();
                    GridPoint point = brute.unset();
                    point[k] = value;
                    if (!same(brute.score(point), piece.score))
                        wrong += brute.task.keys[k].values[static_cast<std::size_t>(value)] + ' ';
                }
            }
            CHECK(next == static_cast<std::int64_t>(brute.task.keys[k].values.size()));
            CHECK(wrong == "");
        }
    }
    CHECK(values > 2000);
    CHECK(pieces < values / 2);  // else it would be a grid
}

TEST_CASE("the best of two keys together is the one that trying all pairs finds", "[differential][tune]") {
    for (std::uint32_t seed = 2; seed <= 20; seed += 3) {
        const Trace trace = small_program(seed);
        const Bytes capacity = tight_capacity(trace);
        std::vector<Trace> traces{trace};
        Task brute(std::move(traces), capacity, {"max_split_size_mb", "garbage_collection_threshold"});
        REQUIRE(brute.task.keys.size() == 2);
        const Tuning tuning = tune(brute.task);
        CHECK(tuning.jointly.complete);
        GridPoint point = brute.unset();
        std::optional<Score> best;
        for (point[0] = 0; point[0] < static_cast<std::int64_t>(brute.task.keys[0].values.size()); ++point[0])
            for (point[1] = 0; point[1] < static_cast<std::int64_t>(brute.task.keys[1].values.size()); point[1] += 1) {
                const Score score = brute.score(point);
                if (!best || better(score, *best, brute.task.goals)) best = score;
            }
        // Expandable segments may be better still.
        const Score& found = tuning.tried[tuning.optimum].score;
        INFO("seed " << seed << ": " << tuning.tried[tuning.optimum].alloc_conf);
        CHECK_FALSE(better(*best, found, brute.task.goals));
        const auto native = std::find_if(
            tuning.tried.begin(), tuning.tried.end(), [&](const Candidate& c) { return same(c.score, *best); });
        CHECK(native != tuning.tried.end());
    }
}

TEST_CASE("the answer does not depend on the number of threads", "[differential][tune]") {
    const Trace trace = small_program(5);
    Task one({trace}, tight_capacity(trace)), two({trace}, tight_capacity(trace));
    two.task.jobs = 3;
    const Tuning a = tune(one.task), b = tune(two.task);
    CHECK(a.replays == b.replays);
    REQUIRE(a.tried.size() == b.tried.size());
    for (std::size_t i = 0; i < a.tried.size(); ++i) CHECK(a.tried[i].alloc_conf == b.tried[i].alloc_conf);
    CHECK(a.tried[a.best].alloc_conf == b.tried[b.best].alloc_conf);
    CHECK(a.pareto == b.pareto);
}

TEST_CASE("a search that may not cost anything says that it has not ended", "[differential][tune]") {
    const Trace trace = small_program(5);
    Task task({trace}, std::nullopt);
    task.task.price = 1;
    const Tuning tuning = tune(task.task);
    CHECK(tuning.exhausted);
    CHECK_FALSE(tuning.keys.front().cover.complete);
}

TEST_CASE("no setting of the front is beaten in both memory and stall", "[differential][tune]") {
    const Trace trace = small_program(9);
    Task task({trace}, tight_capacity(trace));
    const Tuning tuning = tune(task.task);
    REQUIRE_FALSE(tuning.pareto.empty());
    for (const std::size_t on_front : tuning.pareto)
        for (const Candidate& other : tuning.tried) {
            if (other.score.refused) continue;
            const Score &a = tuning.tried[on_front].score, &b = other.score;
            const bool comparable = a.failing == b.failing && a.ooms == b.ooms;
            CHECK_FALSE((
                comparable && b.reserved <= a.reserved && b.stall_ns < a.stall_ns && b.reserved_sum <= a.reserved_sum));
        }
}

TEST_CASE("what PyTorch refuses is never the best, whatever counts", "[differential][tune]") {
    for (std::uint32_t seed = 1; seed <= 6; ++seed) {
        const Trace trace = small_program(seed);
        Task task({trace}, tight_capacity(trace));
        task.task.goals = {seed % 2 == 0 ? Goal::stall : Goal::reserved};
        task.task.others = {"max_split_size_mb:5", "expandable_segments:True"};  // less than 20 is refused
        const Tuning tuning = tune(task.task);
        std::size_t refused = 0;
        for (const Candidate& candidate : tuning.tried) {
            CHECK(candidate.score.refused == !try_alloc_conf(candidate.alloc_conf, "2.11"));
            refused += candidate.score.refused;
        }
        CHECK(refused > 0);
        std::vector<std::size_t> shown = tuning.pareto;
        shown.insert(shown.end(), {tuning.best, tuning.optimum, tuning.simple.value()});
        for (const std::size_t i : shown) CHECK_FALSE(tuning.tried[i].score.refused);
    }
}

TEST_CASE("large segments bound the other keys, and what is found with them is true", "[differential][tune]") {
    for (std::uint32_t seed = 1; seed <= 8; ++seed) {
        const Trace trace = small_program(seed);
        const Bytes capacity = tight_capacity(trace);
        Task task({trace}, capacity, {"max_split_size_mb", "max_non_split_rounding_mb", "large_segment_size_mb"});
        const Tuning tuning = tune(task.task);
        const auto parts = [](const std::string& conf) { return std::count(conf.begin(), conf.end(), ':'); };
        CHECK(std::any_of(tuning.tried.begin(), tuning.tried.end(),
            [&](const Candidate& candidate) { return parts(candidate.alloc_conf) >= 2; }));
        for (const Candidate& candidate : tuning.tried) {
            const auto spec = try_alloc_conf(candidate.alloc_conf, "2.11");
            if (!spec) continue;
            RunOptions options;
            options.limits.memory_limit = capacity;
            CHECK(try_policy(trace, *spec, options).reserved_peak == candidate.score.reserved);
        }
    }
}
