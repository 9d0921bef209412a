// Reference of the cudaMallocAsync pool (spec/async-pool-rule.md).
#include <algorithm>
#include <limits>
#include <vector>

#include "lib/core/error.hpp"
#include "tests/support/reference_parts.hpp"

namespace fragsim::test {
namespace {

constexpr Bytes kChunk = 32 * kMiB;
constexpr Bytes kEndless = Bytes{1} << 45;

class AsyncPool final : public ReferencePolicy {
public:
    AsyncPool(const ReferenceParameters& p, Device& device)
        : device_(device), threshold_(p.word("release_threshold_bytes", "0")),
          opportunistic_(p.flag("reuse_allow_opportunistic", true)),
          internal_(p.flag("reuse_allow_internal_dependencies", true)),
          max_chunks_(round_up(p.number("max_size_bytes", 0), kChunk) / kChunk),
          idle_(p.word("gpu_progress", "idle") == "idle") {
        ready_.push_back({0, kEndless, 0, 0});
    }

    std::optional<Placement> allocate(int id, Bytes bytes, int stream) override {
        const Bytes n = round_up(bytes, 512);
        if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
        const auto all = [](const Range&) { return true; };
        auto place = take(own_[stream], n, all);
        if (!place) place = take(ready_, n, [&](const Range& r) { return unmapped(r.begin, r.end).empty(); });
        for (const int other : streams_)
            if (!place && opportunistic_ && other != stream)
                place = take(own_[other], n, [&](const Range& r) { return passed(other, r); });
        if (!place && opportunistic_)
            for (const int each : streams_) promote(each, [&](const Range& r) { return passed(each, r); });
        if (!place) place = take_and_map(n);
        for (const int other : streams_)
            if (!place && internal_ && other != stream) place = take(own_[other], n, all);
        if (!place) return {};
        live_[id] = {{base_ + static_cast<Address>(*place), n}, stream};
        return live_[id].first;
    }
    void free(int id) override {
        const auto [block, stream] = live_.extract(id).mapped();
        const Bytes begin = static_cast<Bytes>(block.address - base_);
        insert(own_[stream], {begin, begin + block.allocated, 0, ++ticket_[stream]});
    }
    void synchronize(std::optional<int> stream) override {
        for (const int each : streams_)
            if (!stream || *stream == each)
                if (promote(each, [](const Range&) { return true; })) release(threshold());
    }
    void empty_cache() override {
        synchronize({});
        release(0);
    }
    bool tries_again() const override { return false; }  // out of memory is what the driver says
    Bytes reserved() const override { return kChunk * static_cast<Bytes>(mapped_.size()); }

private:
    struct Range {
        Bytes begin, end;
        int stamp, ticket;
        Bytes size() const { return end - begin; }
    };
    using Ranges = std::vector<Range>;

    Bytes threshold() const {
        const unsigned long long given = std::stoull(threshold_);  // the largest value means: never
        return static_cast<Bytes>(std::min<unsigned long long>(given, std::numeric_limits<Bytes>::max()));
    }
    bool passed(int stream, const Range& range) const { return idle_ && range.ticket <= ticket_.at(stream); }

    void insert(Ranges& list, Range range) {
        for (bool joined = true; joined;) {
            joined = false;
            for (auto it = list.begin(); it != list.end() && !joined; ++it) {
                if (it->end != range.begin && it->begin != range.end) continue;
                range = {std::min(it->begin, range.begin), std::max(it->end, range.end), 0,
                    std::max(it->ticket, range.ticket)};
                list.erase(it);
                joined = true;
            }
        }
        range.stamp = ++clock_;
        list.push_back(range);
    }
    // The best fitting range of those that `may` be used: the smallest, then the oldest.
    template <class May>
    Ranges::iterator best(Ranges& list, Bytes n, May may) {
        auto found = list.end();
        for (auto it = list.begin(); it != list.end(); ++it)
            if (it->size() >= n && may(*it) &&
                (found == list.end() || std::pair(it->size(), it->stamp) < std::pair(found->size(), found->stamp)))
                found = it;
        return found;
    }
    template <class May>
    std::optional<Bytes> take(Ranges& list, Bytes n, May may) {
        const auto it = best(list, n, may);
        if (it == list.end()) return {};
        const Range range = *it;
        list.erase(it);
        if (range.size() > n) list.push_back({range.begin + n, range.end, ++clock_, range.ticket});
        return range.begin;
    }
    // Step 5: any range, with memory from idle chunks and new ones where there is none. What is left of the range is
    // back in the list before idle chunks are looked for; when memory is refused, nothing has changed.
    std::optional<Bytes> take_and_map(Bytes n) {
        const Ranges before = ready_;
        const auto place = take(ready_, n, [](const Range&) { return true; });
        const std::vector<Bytes> need = unmapped(*place, *place + n);
        std::vector<Bytes> idle = idle_chunks();
        if (idle.size() > need.size()) idle.resize(need.size());
        const auto fresh = static_cast<Bytes>(need.size() - idle.size());
        const bool allowed = max_chunks_ == 0 || static_cast<Bytes>(mapped_.size()) + fresh <= max_chunks_;
        if (base_ == 0) base_ = device_.reserve(kEndless, {});
        if (!allowed || (fresh > 0 && !device_.map(base_, fresh * kChunk, kChunk, {}))) {
            ready_ = before;
            return {};
        }
        for (const Bytes chunk : idle) mapped_.erase(chunk);
        mapped_.insert(need.begin(), need.end());
        return place;
    }
    template <class Which>
    bool promote(int stream, Which which) {
        Ranges moved, kept;
        for (const Range& range : own_[stream]) (which(range) ? moved : kept).push_back(range);
        own_[stream] = kept;
        std::sort(moved.begin(), moved.end(), [](const Range& a, const Range& b) { return a.ticket > b.ticket; });
        for (const Range& range : moved) insert(ready_, range);
        return !moved.empty();
    }
    void release(Bytes keep) {
        for (const Bytes chunk : idle_chunks()) {
            if (static_cast<Bytes>(mapped_.size()) <= keep / kChunk) break;
            mapped_.erase(chunk);
            device_.unmap(base_, kChunk, kChunk, {});
        }
    }
    // Chunks without memory under [begin, end); of the endless range there are always some.
    std::vector<Bytes> unmapped(Bytes begin, Bytes end) const {
        if (end == kEndless) end = std::max(begin, mapped_.empty() ? 0 : (*mapped_.rbegin() + 1) * kChunk) + kChunk;
        std::vector<Bytes> all;
        for (Bytes chunk = begin / kChunk; chunk * kChunk < end; ++chunk)
            if (!mapped_.contains(chunk)) all.push_back(chunk);
        return all;
    }
    // Highest first.
    std::vector<Bytes> idle_chunks() const {
        std::vector<Bytes> all;
        for (auto chunk = mapped_.rbegin(); chunk != mapped_.rend(); ++chunk)
            for (const Range& range : ready_)
                if (range.begin <= *chunk * kChunk && (*chunk + 1) * kChunk <= range.end) all.push_back(*chunk);
        return all;
    }

    Device& device_;
    const std::string threshold_;
    const bool opportunistic_, internal_;
    const Bytes max_chunks_;  // 0: no bound
    const bool idle_;
    Address base_ = 0;
    int clock_ = 0;
    Ranges ready_;
    std::map<int, Ranges> own_;
    std::map<int, int> ticket_;
    std::vector<int> streams_;  // in order of first use
    std::set<Bytes> mapped_;    // chunks
    std::map<int, std::pair<Placement, int>> live_;
};

}  // namespace

std::unique_ptr<ReferencePolicy> reference_async_policy(
    const std::string& name, const ReferenceParameters& parameters, Device& device) {
    return name == "async-pool" ? std::make_unique<AsyncPool>(parameters, device) : nullptr;
}

}  // namespace fragsim::test
