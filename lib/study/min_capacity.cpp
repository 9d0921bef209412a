#include "lib/study/min_capacity.hpp"

#include <algorithm>
#include <set>

namespace fragsim {
namespace {

constexpr Bytes kUnit = 2 * kMiB;

class Search {
public:
    Search(const Trace& trace, const PolicySpec& spec, const RunOptions& options)
        : trace_(trace), spec_(spec), options_(options), by_memory_limit_(options.limits.memory_limit.has_value()) {
        options_.on_oom = OnOom::stop;
    }

    bool survives_at(Bytes capacity) {
        options_.limits = by_memory_limit_ ? Limits{{}, capacity} : Limits{capacity, {}};
        const Trial trial = try_policy(trace_, spec_, options_);
        ++trials_;
        events_ += static_cast<double>(trial.events);
        return trial.survives();
    }

    std::int64_t trials() const { return trials_; }
    double events() const { return events_; }

private:
    const Trace& trace_;
    const PolicySpec& spec_;
    RunOptions options_;
    bool by_memory_limit_;
    std::int64_t trials_ = 0;
    double events_ = 0;
};

}  // namespace

Bytes least_capacity(const Trace& trace) {
    Bytes live = 0, peak = 0;
    for (const BlockPicture& block : trace.initial.blocks)
        if (block.state == BlockState::active_allocated) live += trace.buffers[block.buffer.value].requested;
    peak = live;
    for (const Event event : trace.events) {
        switch (event.kind()) {
            case EventKind::alloc: peak = std::max(peak, live += trace.buffers[event.subject].requested); break;
            case EventKind::free:
            case EventKind::free_requested: live -= trace.buffers[event.subject].requested; break;
            // As the recorded allocator had rounded it, which is what every policy is asked for (ask_recorded_oom).
            case EventKind::oom: peak = std::max(peak, live + trace.ooms[event.subject].requested); break;
            default: break;
        }
    }
    return peak;
}

std::optional<MinCapacity> find_min_capacity(const Trace& trace, const PolicySpec& spec, const RunOptions& options,
    const MinCapacitySearch& search, Bytes most) {
    Search at(trace, spec, options);
    // Not below what is live: a first guess that survives is the end of the doubling.
    Bytes fails = (round_up(std::max(least_capacity(trace), kUnit), kUnit)) - kUnit, step = kUnit;
    const Bytes least = fails + kUnit;
    Bytes survives = least;
    while (!at.survives_at(survives)) {
        fails = survives;
        if (fails >= most) return {};
        step = std::max(step, round_up(least / 32, kUnit));
        survives = std::min(survives + step, most);
        step *= 2;
    }
    while (survives - fails > kUnit) {
        const Bytes middle = fails + round_up((survives - fails) / 2, kUnit);
        (at.survives_at(middle) ? survives : fails) = middle;
    }

    MinCapacity found;
    found.memory_limit = options.limits.memory_limit.has_value();
    const double price = at.events() + search.replays_below * static_cast<double>(trace.events.size());
    found.bytes = found.excluded_from = survives;
    // PyTorch's allocator may go somewhat beyond a limit where it maps pages, so what is live is not quite the end.
    const Bytes end = std::max(kUnit, least - 32 * kUnit);
    while (found.excluded_from > end && (found.excluded_from == found.bytes || at.events() < price)) {
        const Bytes next = found.excluded_from - kUnit;
        if (at.survives_at(next)) found.bytes = next;
        found.excluded_from = next;
    }
    if (found.excluded_from <= end) found.excluded_from = 0;

    // Most policies do nothing else where nothing is refused any more.
    RunOptions unbounded = options;
    unbounded.limits = {};
    const Bytes top = round_up(try_policy(trace, spec, unbounded).reserved_peak, kUnit);
    std::set<Bytes> above;
    for (int i = 1; i <= search.probes_next; ++i) above.insert(found.bytes + i * kUnit);
    for (int i = 1; i <= search.probes_above; ++i)
        above.insert(
            found.bytes + round_up((top - found.bytes) / kUnit * i / (search.probes_above + 1) * kUnit, kUnit));
    for (const Bytes capacity : above)
        if (capacity > found.bytes && capacity < top && !at.survives_at(capacity)) found.highest_failing = capacity;
    found.trials = at.trials();
    return found;
}

}  // namespace fragsim
