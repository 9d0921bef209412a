#include "traces/pytorch_empty_cache.hpp"

#include <algorithm>

namespace fragsim {
namespace {

bool releases(const EntryRecord& entry) {
    return entry.kind() == Action::segment_free || entry.kind() == Action::segment_unmap;
}
bool obtains(const EntryRecord& entry) {
    return entry.kind() == Action::segment_alloc || entry.kind() == Action::segment_map;
}
bool completes(const EntryRecord& entry) { return entry.kind() == Action::free_completed; }

// Segments of 2 MiB hold small blocks, all larger ones large blocks. Expandable memory is released in pages of 2 MiB
// or 20 MiB; ten small pages in a row are taken for a large one.
bool is_small(const EntryRecord& release) {
    return release.kind() == Action::segment_free ? release.size == kSmallSegment : release.size % kLargeSegment != 0;
}

bool fits(const EntryRecord& request, const EntryRecord& release, const AllocatorRules& rules) {
    const Bytes rounded = round_request(request.size, rules.roundup);
    if (release.stream != request.stream || is_small(release) != (rounded <= kSmallSize) || release.size < rounded)
        return false;
    if (request.pool != 0 && release.pool != 0 && request.pool != release.pool) return false;
    if (rules.max_split_size <= 0 || rounded <= kSmallSize) return true;
    // Oversize blocks serve oversize requests only, and only close ones.
    if (rounded < rules.max_split_size) return release.size < rules.max_split_size;
    return release.size < rounded + kLargeSegment;
}

class RunFinder {
public:
    RunFinder(std::span<const EntryRecord> entries, const AllocatorRules& rules) : entries_(entries), rules_(rules) {}

    ReleaseRun run_at(std::uint32_t begin) {
        std::uint32_t end = begin, last_release = begin;
        for (; end < entries_.size() && (releases(entries_[end]) || completes(entries_[end])); ++end)
            if (releases(entries_[end])) last_release = end;
        std::uint32_t next = end;
        while (next < entries_.size() && obtains(entries_[next])) ++next;

        ReleaseRun run{begin, last_release + 1, true};
        if (next == entries_.size()) return run;
        const EntryRecord& then = entries_[next];
        if (then.kind() == Action::oom)
            run.empty_cache = false;
        else if (then.kind() == Action::alloc && next > end)
            run.empty_cache = could_have_fitted(then, run);
        return run;
    }

private:
    bool could_have_fitted(const EntryRecord& request, const ReleaseRun& run) const {
        // The frees of this same call: completed ones before the first release and between them, unless the program
        // asked for them right there.
        std::vector<Address> completed;
        for (std::uint32_t i = run.begin; i > 0 && completes(entries_[i - 1]) && !asked_for(i - 1); --i)
            completed.push_back(entries_[i - 1].address);
        for (std::uint32_t i = run.begin; i < run.end; ++i)
            if (completes(entries_[i])) completed.push_back(entries_[i].address);
        std::sort(completed.begin(), completed.end());

        for (std::uint32_t i = run.begin; i < run.end; ++i) {
            const EntryRecord& release = entries_[i];
            if (!releases(release) || !fits(request, release, rules_)) continue;
            const auto inside = std::lower_bound(completed.begin(), completed.end(), release.address);
            if (inside == completed.end() || *inside - release.address >= static_cast<Address>(release.size))
                return true;
        }
        return false;
    }

    bool asked_for(std::uint32_t completed) const {
        return completed > 0 && entries_[completed - 1].kind() == Action::free_requested &&
               entries_[completed - 1].address == entries_[completed].address;
    }

    std::span<const EntryRecord> entries_;
    const AllocatorRules& rules_;
};

}  // namespace

std::vector<ReleaseRun> find_release_runs(std::span<const EntryRecord> entries, const AllocatorRules& rules) {
    std::vector<ReleaseRun> runs;
    RunFinder finder(entries, rules);
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
        if (!releases(entries[i])) continue;
        runs.push_back(finder.run_at(i));
        i = runs.back().end - 1;
    }
    return runs;
}

}  // namespace fragsim
