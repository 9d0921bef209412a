#include "traces/pytorch_empty_cache.hpp"

#include <algorithm>
#include <optional>

#include "traces/pytorch_release_stack.hpp"

namespace fragsim {
namespace {

bool releases(const EntryRecord& entry) {
    return entry.kind() == Action::segment_free || entry.kind() == Action::segment_unmap;
}
bool obtains(const EntryRecord& entry) {
    return entry.kind() == Action::segment_alloc || entry.kind() == Action::segment_map;
}
bool completes(const EntryRecord& entry) { return entry.kind() == Action::free_completed; }

class RunFinder {
public:
    RunFinder(const Snapshot& snapshot, int device)
        : entries_(snapshot.history(static_cast<std::size_t>(device))), stacks_(snapshot.records) {}

    std::vector<ReleaseRun> find() {
        std::vector<ReleaseRun> runs;
        for (std::uint32_t i = 0; i < entries_.size(); ++i) {
            if (obtains(entries_[i])) stacks_.obtained(entries_[i]);
            if (!releases(entries_[i])) {
                segment_entries_ += obtains(entries_[i]);
                continue;
            }
            std::uint32_t last = i;
            ReleaseRun run{segment_entries_, 0, ReleaseCause::open, entries_[i].time_us};
            const bool named = stacks_.names_empty_cache(entries_[i]);
            for (std::uint32_t at = i; at < entries_.size(); ++at) {
                if (completes(entries_[at])) continue;
                if (!releases(entries_[at]) || stacks_.names_empty_cache(entries_[at]) != named) break;
                last = at;
                ++run.count;
            }
            run.cause = named ? ReleaseCause::named_empty_cache : cause_of(i, last + 1);
            segment_entries_ += run.count;
            runs.push_back(run);
            i = last;
        }
        return runs;
    }

private:
    // Entries `begin` to `end` are a run that no stack calls an empty_cache.
    ReleaseCause cause_of(std::uint32_t begin, std::uint32_t end) {
        // A malloc that releases memory between two calls for more.
        if (begin > 0 && obtains(entries_[begin - 1])) return ReleaseCause::malloc;
        bool grows = false;
        std::uint32_t next = end;
        while (next < entries_.size() && completes(entries_[next])) ++next;
        while (next < entries_.size() && (obtains(entries_[next]) || (grows && releases(entries_[next])))) {
            grows |= obtains(entries_[next]);
            ++next;
        }
        const EntryRecord* then = next < entries_.size() ? &entries_[next] : nullptr;
        const bool requests = then && (then->kind() == Action::alloc || then->kind() == Action::oom);

        for (std::uint32_t i = begin; i < end; ++i)
            if (releases(entries_[i])) switch (stacks_.tells(entries_[i], requests ? then->stack : kNoStack)) {
                    case ReleaseStacks::malloc: return ReleaseCause::malloc;
                    case ReleaseStacks::other_call: return ReleaseCause::empty_cache;
                    case ReleaseStacks::nothing: break;
                }
        return requests && (grows || then->kind() == Action::oom) ? ReleaseCause::open : ReleaseCause::empty_cache;
    }

    std::span<const EntryRecord> entries_;
    ReleaseStacks stacks_;
    std::uint32_t segment_entries_ = 0;
};

Bytes segment_size(Bytes rounded) {
    if (rounded <= kSmallSize) return kSmallSegment;
    return rounded < kLargeSegment / 2 ? kLargeSegment : round_up(rounded, kSmallSegment);
}

// Rule 3 for the open runs of a trace, in order.
class OpenRuns {
public:
    OpenRuns(const Trace& trace, const AllocatorRules& rules) : trace_(trace), rules_(rules), memory_(trace, rules) {
        Bytes reserved = memory_.reserved();
        for (const SegmentEvent& event : trace.segment_events) {
            const bool obtained = event.kind == SegmentEventKind::alloc || event.kind == SegmentEventKind::map;
            reserved += obtained ? event.bytes : -event.bytes;
            most_reserved_ = std::max(most_reserved_, reserved);
        }
    }

    // Open: it may have been either.
    ReleaseCause decide(const ReleaseRun& run) {
        const std::optional<Request> request = request_behind(run);
        if (!request) return ReleaseCause::empty_cache;
        memory_.advance_to(run.first);
        const Bytes rounded = round_request(request->bytes, rules_.roundup);
        if (memory_.serves(rounded, request->stream, {.late_in_use = true})) return ReleaseCause::empty_cache;

        if (trace_.pools.size() == 1) {
            const std::vector<Release> recorded = recorded_releases(run);
            const bool everything = recorded == memory_.release_cached({});
            const bool refused = is_refusal(run, recorded, rounded, request->stream);
            if (everything && !refused) return ReleaseCause::empty_cache;
            if (refused && !everything) return ReleaseCause::malloc;
            if (!everything) return ReleaseCause::open;  // memory that is not known to be cached went too
            // A collection of garbage takes large segments, and needs no refusal.
            if (rules_.garbage_collection && std::all_of(recorded.begin(), recorded.end(), [](const Release& release) {
                    return release.kind == SegmentEventKind::free && release.bytes > kSmallSegment;
                }))
                return ReleaseCause::malloc;
        } else if (rules_.garbage_collection) {
            return ReleaseCause::malloc;
        }
        // A refusal bounds what the process could have. What other users of the card hold, and the page by which
        // expandable memory may exceed a limit, can move that bound a little.
        const Bytes asked = memory_.reserved() + std::max(segment_size(rounded), round_up(rounded, kLargeSegment));
        const bool more_was_held = asked + asked / 16 + kLargeSegment <= most_reserved_;
        return more_was_held ? ReleaseCause::empty_cache : ReleaseCause::open;
    }

private:
    struct Request {
        Bytes bytes;
        StreamId stream;
    };

    std::optional<Request> request_behind(const ReleaseRun& run) const {
        for (std::uint32_t i = trace_.segment_events[run.first + run.count - 1].before_event; i < trace_.events.size();
             ++i) {
            const Event event = trace_.events[i];
            if (event.kind() == EventKind::alloc) {
                const Buffer& buffer = trace_.buffers[event.subject];
                return Request{buffer.requested, buffer.stream_id()};
            }
            if (event.kind() == EventKind::oom) {
                const RecordedOom& oom = trace_.ooms[event.subject];
                return Request{oom.requested, oom.stream};
            }
        }
        return {};
    }

    std::vector<Release> recorded_releases(const ReleaseRun& run) const {
        std::vector<Release> recorded;
        for (std::uint32_t i = run.first; i < run.first + run.count; ++i) {
            const SegmentEvent& event = trace_.segment_events[i];
            recorded.push_back({event.kind, event.address, event.bytes});
        }
        return recorded;
    }

    // Is this what a malloc gives back that was refused? Oversize blocks first; then, unless these were enough and the
    // driver gave way, all that is cached, after it has waited for delayed frees.
    bool is_refusal(const ReleaseRun& run, const std::vector<Release>& recorded, Bytes rounded, StreamId stream) const {
        RecordedMemory::View behind;
        for (std::uint32_t i = trace_.segment_events[run.first].before_event;
             i < trace_.segment_events[run.first + run.count - 1].before_event; ++i)
            if (trace_.events[i].kind() == EventKind::free_completed)
                behind.also_free.push_back(trace_.buffers[trace_.events[i].subject].recorded_address);
        for (const bool late_in_use : {false, true}) {
            if (late_in_use && !memory_.has_late()) break;
            bool enough = false;
            std::vector<Release> predicted =
                memory_.release_oversize(rounded, stream, {.late_in_use = late_in_use}, enough);
            if (enough && recorded == predicted) return true;
            behind.released = predicted;
            const std::vector<Release> rest = memory_.release_cached(behind);
            predicted.insert(predicted.end(), rest.begin(), rest.end());
            if (recorded == predicted) return true;
        }
        return false;
    }

    const Trace& trace_;
    const AllocatorRules& rules_;
    RecordedMemory memory_;
    Bytes most_reserved_ = 0;
};

}  // namespace

std::vector<ReleaseRun> find_release_runs(const Snapshot& snapshot, int device) {
    return RunFinder(snapshot, device).find();
}

void insert_empty_caches(Trace& trace, std::vector<ReleaseRun> runs, const AllocatorRules& rules) {
    const auto is_open = [](const ReleaseRun& run) { return run.cause == ReleaseCause::open; };
    const auto is_malloc = [](const ReleaseRun& run) { return run.cause == ReleaseCause::malloc; };
    if (std::any_of(runs.begin(), runs.end(), is_open)) {
        OpenRuns open(trace, rules);
        for (ReleaseRun& run : runs)
            if (is_open(run)) run.cause = open.decide(run);
        trace.doubtful_refusal = trace.ooms.empty() && std::none_of(runs.begin(), runs.end(), is_malloc) &&
                                 std::count_if(runs.begin(), runs.end(), is_open) == 1;
        for (ReleaseRun& run : runs)
            if (is_open(run)) run.cause = ReleaseCause::malloc;
    }
    std::erase_if(runs, is_malloc);
    if (runs.empty()) return;

    // An event goes before what followed the first release of each run. The releases of the run are its own, segment
    // events before them happened before it.
    std::vector<SegmentEvent>& calls = trace.segment_events;
    std::vector<Event> events;
    std::vector<std::int64_t> times;
    events.reserve(trace.events.size() + runs.size());
    if (!trace.time_us.empty()) times.reserve(trace.events.size() + runs.size());
    std::uint32_t next_event = 0, next_call = 0;
    const auto copy_events = [&](std::uint32_t end) {
        for (; next_event < end; ++next_event) {
            events.push_back(trace.events[next_event]);
            if (!trace.time_us.empty()) times.push_back(trace.time_us[next_event]);
        }
    };
    const bool timed = !trace.time_us.empty() || (trace.events.empty() && runs.front().time_us != kNoTime);
    std::uint32_t inserted = 0;
    for (const ReleaseRun& run : runs) {
        const std::uint32_t before = calls[run.first].before_event;
        copy_events(before);
        for (; next_call < run.first; ++next_call) calls[next_call].before_event += inserted;
        for (; next_call < run.first + run.count; ++next_call) calls[next_call].before_event = before + inserted;
        events.push_back({static_cast<std::uint32_t>(EventKind::empty_cache), 0});
        if (timed) times.push_back(run.time_us);
        trace.inferred_empty_caches += run.cause == ReleaseCause::empty_cache;
        ++inserted;
    }
    for (; next_call < calls.size(); ++next_call) calls[next_call].before_event += inserted;
    copy_events(static_cast<std::uint32_t>(trace.events.size()));
    trace.events = std::move(events);
    trace.time_us = std::move(times);
}

}  // namespace fragsim
