#include "lib/study/trial.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/study/setup.hpp"
#include "lib/study/workspace.hpp"

namespace fragsim {
namespace {

// What holds for both.
void narrow(std::vector<SameCourse>& same, const std::vector<SameCourse>& other) {
    FRAGSIM_ASSERT(same.size() == other.size());
    for (std::size_t i = 0; i < same.size(); ++i) {
        same[i].above = std::max(same[i].above, other[i].above);
        same[i].up_to = std::min(same[i].up_to, other[i].up_to);
    }
}

Trial try_once(const Trace& trace, const PolicySpec& spec, const RunOptions& options) {
    Trial trial;
    ReplayOutcome outcome;
    std::vector<RecordedOomAnswer> recorded;
    {
        Hardware hardware(trace, spec, options);
        Setup setup(trace, spec, options, hardware);
        outcome = replay(trace, setup.policy(), setup.device(), {},
            {.on_oom = options.on_oom, .frees = options.frees, .left_out = setup.restored().left_out});
        const AllocatorStats& stats = setup.policy().stats();
        trial.left_out = std::ssize(setup.restored().left_out);
        trial.optional_ooms = std::count_if(outcome.failed.begin(), outcome.failed.end(),
            [&](std::uint32_t event) { return workspace_at(trace, event).has_value(); });
        trial.reserved_peak = stats.reserved_bytes.all.peak;
        trial.retries = stats.num_alloc_retries;
        trial.driver_calls = static_cast<std::int64_t>(setup.device().calls().size()) + setup.device().refused();
        trial.driver_time_ns = setup.device().modelled_ns();
        trial.events = outcome.events;
        trial.same = setup.policy().same_course();
    }
    const auto failures = [&] { return count_failures(outcome, trial.left_out, recorded); };
    for (const std::uint32_t event : recorded_oom_events(trace)) {
        if (options.on_oom == OnOom::stop && failures() > 0) break;
        const auto look = [&](Setup& setup, std::uint32_t) { narrow(trial.same, setup.policy().same_course()); };
        recorded.push_back(ask_recorded_oom(trace, spec, options, event, look));
        trial.events += event;
    }
    trial.ooms = failures();
    return trial;
}

}  // namespace

Trial try_policy(const Trace& trace, const PolicySpec& spec, const RunOptions& asked) {
    RunOptions options = asked;
    options.device = {};
    options.repetitions = 0;
    Trial trial = try_once(trace, spec, options);
    const auto other = spec.other_end();
    if (!other) return trial;
    const Trial there = try_once(trace, *other, options);
    const std::uint64_t events = trial.events + there.events;
    const auto badness = [](const Trial& t) { return std::tuple(t.left_out, t.ooms, t.reserved_peak); };
    if (badness(there) > badness(trial)) trial = there;
    trial.events = events;
    return trial;
}

}  // namespace fragsim
