#include "traces/pytorch_pools.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "traces/pytorch_rounding.hpp"

namespace fragsim {
namespace {

constexpr std::uint16_t kUnknown = 0xffff;
constexpr std::uint32_t kNever = 0xffffffffu;

// A segment from the call that got it to the call that gave it back.
struct Life {
    Address address;
    Bytes size;
    StreamId stream;
    bool small, expandable;
    std::uint16_t pool;
    std::uint32_t first_use;  // event index
    std::uint32_t death;      // index into segment_events; kNever: alive at the end
};

bool obtains(const SegmentEvent& event) {
    return event.kind == SegmentEventKind::alloc || event.kind == SegmentEventKind::map;
}
bool is_small(Bytes requested) { return round_up(requested, 512) <= kSmallSize; }

class PoolInference {
public:
    explicit PoolInference(Trace& trace) : trace_(trace) {}

    void run(bool recorded) {
        follow_segments();
        if (!recorded) {
            for (Life& life : lives_)
                if (life.pool == kUnknown) life.pool = life.expandable ? nearest_part(life) : from_history(life);
            for (std::size_t b = 0; b < life_of_buffer_.size(); ++b)
                if (life_of_buffer_[b] != kNever) trace_.buffers[b].pool = lives_[life_of_buffer_[b]].pool;
        }
        insert_releases();
    }

private:
    void follow_segments();
    void add_life(const SegmentEvent& event);
    void end_life(std::uint32_t segment_event);
    const SegmentPicture* final_segment(Address address, StreamId stream) const;
    std::uint16_t nearest_part(const Life& life);
    enum class Owner { unknown, default_pool, private_pool };
    std::uint16_t from_history(const Life& life);
    Owner by_release_order(const Life& life) const;
    std::uint16_t private_pool_of(std::uint16_t candidate);
    void insert_releases();

    Trace& trace_;
    std::vector<Life> lives_;
    std::map<Address, std::uint32_t> here_;  // lives going on, by address
    std::vector<std::uint32_t> life_of_buffer_ = std::vector<std::uint32_t>(trace_.buffers.size(), kNever);
    std::vector<std::uint32_t> life_of_death_ = std::vector<std::uint32_t>(trace_.segment_events.size(), kNever);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> uses_;  // event, life
};

// Lives of all segments, and which of them every buffer lay in.
void PoolInference::follow_segments() {
    for (const SegmentPicture& segment : trace_.initial.segments) {
        here_[segment.address] = static_cast<std::uint32_t>(lives_.size());
        lives_.push_back(
            {segment.address, segment.size, segment.stream, segment.small, segment.expandable, kUnknown, 0, kNever});
    }
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < trace_.events.size(); ++i) {
        const Event event = trace_.events[i];
        for (; next < trace_.segment_events.size() && trace_.segment_events[next].before_event <= i; ++next)
            obtains(trace_.segment_events[next]) ? add_life(trace_.segment_events[next]) : end_life(next);
        if (event.kind() != EventKind::alloc) continue;
        const Buffer& buffer = trace_.buffers[event.subject];
        const auto above = here_.upper_bound(buffer.recorded_address);
        if (above == here_.begin()) continue;
        Life& life = lives_[std::prev(above)->second];
        if (buffer.recorded_address >= life.address + static_cast<Address>(life.size)) continue;
        life.small = is_small(buffer.requested);
        life.first_use = std::min(life.first_use, i);
        life_of_buffer_[event.subject] = std::prev(above)->second;
        uses_.emplace_back(i, std::prev(above)->second);
    }
    for (; next < trace_.segment_events.size(); ++next)
        if (!obtains(trace_.segment_events[next])) end_life(next);
    for (const auto& [address, index] : here_)  // alive at the end: the picture knows them
        if (const SegmentPicture* segment = final_segment(address, lives_[index].stream))
            lives_[index].pool = segment->pool;
}

void PoolInference::add_life(const SegmentEvent& event) {
    here_[event.address] = static_cast<std::uint32_t>(lives_.size());
    lives_.push_back({event.address, event.bytes, event.stream, event.bytes == kSmallSegment,
        event.kind == SegmentEventKind::map, kUnknown, kNever, kNever});
}

// An unmapped range may cover several mapped ones and parts of them; what is left keeps its life.
void PoolInference::end_life(std::uint32_t index) {
    const SegmentEvent& event = trace_.segment_events[index];
    const Address end = event.address + static_cast<Address>(event.bytes);
    auto place = here_.upper_bound(event.address);
    if (place != here_.begin()) --place;
    while (place != here_.end() && place->first < end) {
        const std::uint32_t number = place->second;
        const Life life = lives_[number];
        const Address life_end = life.address + static_cast<Address>(life.size);
        if (life_end <= event.address) {
            ++place;
            continue;
        }
        life_of_death_[index] = number;
        lives_[number].death = index;
        place = here_.erase(place);
        if (life.address < event.address) here_[life.address] = number;
        if (life_end > end) {
            Life rest = life;
            rest.address = end;
            rest.size = static_cast<Bytes>(life_end - end);
            here_[end] = static_cast<std::uint32_t>(lives_.size());
            lives_.push_back(rest);
        }
    }
}

const SegmentPicture* PoolInference::final_segment(Address address, StreamId stream) const {
    if (!trace_.final) return nullptr;
    const auto& segments = trace_.final->segments;
    const auto above = std::upper_bound(
        segments.begin(), segments.end(), address, [](Address a, const SegmentPicture& s) { return a < s.address; });
    if (above == segments.begin()) return nullptr;
    const SegmentPicture& segment = *(above - 1);
    return address < segment.address + static_cast<Address>(segment.size) && segment.stream == stream ? &segment
                                                                                                      : nullptr;
}

// Rule 1.
std::uint16_t PoolInference::nearest_part(const Life& life) {
    std::uint16_t pool = 0;
    Address best = ~Address{0};
    if (!trace_.final) return pool;
    for (const SegmentPicture& segment : trace_.final->segments) {
        if (!segment.expandable || segment.stream != life.stream || segment.small != life.small) continue;
        const Address distance =
            segment.address > life.address ? segment.address - life.address : life.address - segment.address;
        if (distance < best) best = distance, pool = segment.pool;
    }
    trace_.inferred_pools = true;
    return pool;
}

// Rules 2 and 3.
std::uint16_t PoolInference::from_history(const Life& life) {
    trace_.inferred_pools = true;
    std::uint16_t before = kUnknown, after = kUnknown;
    for (const auto& [event, other] : uses_) {
        if (lives_[other].pool == kUnknown || lives_[other].stream != life.stream) continue;
        if (event < life.first_use) {
            before = lives_[other].pool;
        } else {
            after = lives_[other].pool;
            break;
        }
    }
    switch (by_release_order(life)) {
        case Owner::default_pool: return 0;
        case Owner::private_pool: return private_pool_of(before != kUnknown && before != 0 ? before : after);
        case Owner::unknown: break;
    }
    return before != kUnknown ? before : after != kUnknown ? after : std::uint16_t{0};
}

PoolInference::Owner PoolInference::by_release_order(const Life& life) const {
    if (life.death == kNever) return Owner::unknown;
    const std::vector<SegmentEvent>& events = trace_.segment_events;
    const auto same_release = [&](std::uint32_t i) {
        return i < events.size() && !obtains(events[i]) && events[i].before_event == events[life.death].before_event;
    };
    std::uint32_t first = life.death, end = life.death;
    while (first > 0 && same_release(first - 1)) --first;
    while (same_release(end)) ++end;
    const auto any = [&](std::uint32_t from, std::uint32_t to, bool small) {
        for (std::uint32_t i = from; i < to; ++i)
            if (life_of_death_[i] != kNever && lives_[life_of_death_[i]].small == small) return true;
        return false;
    };
    if (!life.small)
        return any(first, life.death, true) ? Owner::private_pool
               : any(life.death, end, true) ? Owner::default_pool
                                            : Owner::unknown;
    const bool large_before = any(first, life.death, false), large_behind = any(life.death, end, false);
    return large_before == large_behind ? Owner::unknown : large_behind ? Owner::private_pool : Owner::default_pool;
}

// A private pool of which nothing is left has no name in the file.
std::uint16_t PoolInference::private_pool_of(std::uint16_t candidate) {
    if (candidate != kUnknown && candidate != 0) return candidate;
    const PoolName unnamed{0, -1};
    const auto known = std::find(trace_.pools.begin(), trace_.pools.end(), unnamed);
    if (known != trace_.pools.end()) return static_cast<std::uint16_t>(known - trace_.pools.begin());
    trace_.pools.push_back(unnamed);
    return static_cast<std::uint16_t>(trace_.pools.size() - 1);
}

void PoolInference::insert_releases() {
    struct Insertion {
        std::uint32_t before;
        std::uint16_t pool;
        bool alone;  // nothing but this pool's memory goes back
    };
    std::vector<Insertion> insertions;
    std::vector<bool> released(trace_.pools.size());
    const std::vector<SegmentEvent>& events = trace_.segment_events;
    for (std::uint32_t i = 0; i < events.size();) {
        if (obtains(events[i]) || life_of_death_[i] == kNever) {
            ++i;
            continue;
        }
        const std::uint32_t before = events[i].before_event;
        std::vector<std::uint16_t> pools;
        for (; i < events.size() && events[i].before_event == before && !obtains(events[i]); ++i)
            if (life_of_death_[i] != kNever) pools.push_back(lives_[life_of_death_[i]].pool);
        const bool alone = std::all_of(pools.begin(), pools.end(), [&](std::uint16_t p) { return p == pools.front(); });
        for (const std::uint16_t pool : pools) {
            if (pool == 0 || pool == kUnknown || released[pool]) continue;
            released[pool] = true;
            insertions.push_back({before, pool, alone});
        }
    }
    if (insertions.empty()) return;

    std::vector<std::uint32_t> moved_to;  // old event index -> new
    std::vector<Event> all;
    std::vector<std::int64_t> times;
    auto next = insertions.begin();
    for (std::uint32_t i = 0; i <= trace_.events.size(); ++i) {
        for (; next != insertions.end() && next->before == i; ++next) {
            all.push_back({static_cast<std::uint32_t>(EventKind::release_pool), next->pool});
            if (!trace_.time_us.empty())
                times.push_back(trace_.time_us[std::min<std::size_t>(i, trace_.time_us.size() - 1)]);
        }
        moved_to.push_back(static_cast<std::uint32_t>(all.size()));
        if (i == trace_.events.size()) break;
        Event event = trace_.events[i];
        const auto emptied = std::find_if(
            insertions.begin(), insertions.end(), [&](const Insertion& in) { return in.before == i && in.alone; });
        if (event.kind() == EventKind::empty_cache && emptied != insertions.end())
            event = {static_cast<std::uint32_t>(EventKind::empty_pool), emptied->pool};
        all.push_back(event);
        if (!trace_.time_us.empty()) times.push_back(trace_.time_us[i]);
    }
    trace_.events = std::move(all);
    trace_.time_us = std::move(times);
    for (SegmentEvent& event : trace_.segment_events) event.before_event = moved_to[event.before_event];
}

}  // namespace

void infer_pools(Trace& trace, bool recorded) {
    bool private_pools = trace.pools.size() > 1;
    // Without a pool in sight: a release that goes from small segments to large ones shows a private one.
    for (std::size_t i = 1; i < trace.segment_events.size() && !private_pools; ++i) {
        const SegmentEvent &earlier = trace.segment_events[i - 1], &later = trace.segment_events[i];
        private_pools = earlier.kind == SegmentEventKind::free && later.kind == SegmentEventKind::free &&
                        earlier.before_event == later.before_event && earlier.bytes == kSmallSegment &&
                        later.bytes > kSmallSegment;
    }
    if (private_pools) PoolInference(trace).run(recorded);
}

}  // namespace fragsim
