#include "tests/support/reference_async_pool.hpp"

#include <algorithm>

#include "lib/core/error.hpp"
#include "tests/support/reference_parts.hpp"

namespace fragsim::test {

ReferenceAsyncPool::ReferenceAsyncPool(const Settings& settings, Device& device)
    : device_(device), settings_(settings),
      end_(settings.max_size > 0 ? 2 * round_up(settings.max_size, kChunk) : Bytes{1} << 45) {
    ready_.push_back({0, end_, 0, 0});
}

std::optional<Placement> ReferenceAsyncPool::allocate(int id, Bytes bytes, int stream) {
    const Bytes n = round_up(bytes, 512);
    if (base_ == 0) base_ = device_.reserve(end_, {});
    meet(stream);
    const auto any = [](const Range&) { return true; };
    auto place = take(own_[stream], n, any);
    if (!place) place = take(ready_, n, [&](const Range& r) { return unmapped(r.begin, r.end).empty(); });
    for (const int other : streams_)
        if (!place && settings_.opportunistic && other != stream)
            place = take(own_[other], n, [&](const Range& r) { return passed(other, r); });
    if (!place && settings_.opportunistic)
        for (const int each : streams_)
            promote(
                each, [&](const Range& r) { return passed(each, r); }, [] {});
    if (!place) place = take_and_map(n);
    if (!place) trim(settings_.threshold);
    for (const int other : streams_)
        if (!place && settings_.internal && other != stream) place = take(own_[other], n, any);
    if (!place) return {};
    live_[id] = {*place, n, stream};
    return Placement{base_ + static_cast<Address>(*place), n};
}

void ReferenceAsyncPool::free(int id) { free(id, live_.at(id).stream); }
void ReferenceAsyncPool::free(int id, int stream) {
    const Live block = live_.extract(id).mapped();
    meet(stream);
    insert(own_[stream], {block.place, block.place + block.size, 0, ++ticket_[stream]});
}

void ReferenceAsyncPool::synchronize(std::optional<int> stream) {
    for (const int each : streams_)
        if (!stream || *stream == each)
            promote(
                each, [](const Range&) { return true; }, [&] { trim(settings_.threshold); });
}

void ReferenceAsyncPool::trim(Bytes keep) {
    for (const Bytes chunk : idle_chunks()) {
        if (static_cast<Bytes>(mapped_.size()) <= keep / kChunk) break;
        mapped_.erase(chunk);
        device_.unmap(base_, kChunk, kChunk, {});
    }
}

void ReferenceAsyncPool::empty_cache() {
    synchronize({});
    trim(0);
}

bool ReferenceAsyncPool::passed(int stream, const Range& range) const {
    return settings_.idle && range.ticket <= ticket_.at(stream);
}

void ReferenceAsyncPool::meet(int stream) {
    if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
}

void ReferenceAsyncPool::insert(Ranges& list, Range range) {
    for (bool joined = true; joined;) {
        joined = false;
        for (auto it = list.begin(); it != list.end() && !joined; ++it) {
            if (it->end != range.begin && it->begin != range.end) continue;
            range = {
                std::min(it->begin, range.begin), std::max(it->end, range.end), 0, std::max(it->ticket, range.ticket)};
            list.erase(it);
            joined = true;
        }
    }
    range.stamp = ++clock_;
    list.push_back(range);
}

// The low end of the best fitting range of those that `may` be used: the smallest, then the oldest.
template <class May>
std::optional<Bytes> ReferenceAsyncPool::take(Ranges& list, Bytes n, May may) {
    auto found = list.end();
    for (auto it = list.begin(); it != list.end(); ++it)
        if (it->size() >= n && may(*it) &&
            (found == list.end() || std::pair(it->size(), it->stamp) < std::pair(found->size(), found->stamp)))
            found = it;
    if (found == list.end()) return {};
    const Range range = *found;
    list.erase(found);
    if (range.size() > n) list.push_back({range.begin + n, range.end, ++clock_, range.ticket});
    return range.begin;
}

// Step 5: any range, with memory from idle chunks and new ones where there is none. What is left of the range is back
// in the list before idle chunks are looked for. Chunks that came although others were refused stay.
std::optional<Bytes> ReferenceAsyncPool::take_and_map(Bytes n) {
    const Ranges before = ready_;
    const auto place = take(ready_, n, [](const Range&) { return true; });
    if (!place) return {};
    std::vector<Bytes> idle = idle_chunks();  // highest first
    std::reverse(idle.begin(), idle.end());
    for (const Bytes chunk : unmapped(*place, *place + n)) {
        if (!idle.empty()) {
            mapped_.erase(idle.back());
            idle.pop_back();
        } else {
            const Bytes after = kChunk * static_cast<Bytes>(mapped_.size() + 1);
            const bool allowed = settings_.max_size == 0 || after <= round_up(settings_.max_size, kChunk);
            if (!allowed || !device_.map(base_, kChunk, kChunk, {})) {
                ready_ = before;
                return {};
            }
        }
        mapped_.insert(chunk);
    }
    return place;
}

// Ranges of a stream become ready, the latest free first.
template <class Which, class After>
void ReferenceAsyncPool::promote(int stream, Which which, After after_each) {
    Ranges moved, kept;
    for (const Range& range : own_[stream]) (which(range) ? moved : kept).push_back(range);
    own_[stream] = kept;
    std::sort(moved.begin(), moved.end(), [](const Range& a, const Range& b) { return a.ticket > b.ticket; });
    for (const Range& range : moved) {
        insert(ready_, range);
        after_each();
    }
}

// Chunks without memory under [begin, end); of a range to the end of all addresses, the first few.
std::vector<Bytes> ReferenceAsyncPool::unmapped(Bytes begin, Bytes end) const {
    if (end == end_)
        end = std::min(end, std::max(begin, mapped_.empty() ? 0 : (*mapped_.rbegin() + 1) * kChunk) + kChunk);
    std::vector<Bytes> all;
    for (Bytes chunk = begin / kChunk; chunk * kChunk < end; ++chunk)
        if (!mapped_.contains(chunk)) all.push_back(chunk);
    return all;
}

std::vector<Bytes> ReferenceAsyncPool::idle_chunks() const {
    std::vector<Bytes> all;
    for (auto chunk = mapped_.rbegin(); chunk != mapped_.rend(); ++chunk)
        for (const Range& range : ready_)
            if (range.begin <= *chunk * kChunk && (*chunk + 1) * kChunk <= range.end) all.push_back(*chunk);
    return all;
}

std::unique_ptr<ReferencePolicy> reference_async_policy(
    const std::string& name, const ReferenceParameters& p, Device& device) {
    if (name != "async-pool") return nullptr;
    return std::make_unique<ReferenceAsyncPool>(
        ReferenceAsyncPool::Settings{p.number("release_threshold_bytes", 0), p.flag("reuse_allow_opportunistic", true),
            p.flag("reuse_allow_internal_dependencies", true), p.number("max_size_bytes", 0),
            p.word("gpu_progress", "idle") == "idle"},
        device);
}

}  // namespace fragsim::test
