// Reference of GMLake's stitching as the published code does it (spec/policies.md, section 7.2). Free blocks join
// inside their segment at once, so they are the longest runs of free chunks.
#include <algorithm>
#include <vector>

#include "lib/core/error.hpp"
#include "tests/support/reference_parts.hpp"

namespace fragsim::test {
namespace {

constexpr Bytes kChunk = 2 * kMiB, kSmallSegment = 2 * kMiB;

class Released final : public ReferencePolicy {
public:
    Released(const ReferenceParameters& p, Device& device)
        : device_(device), small_limit_(p.number("small_limit_bytes", kMiB)),
          frag_limit_(p.number("frag_limit_bytes", 512 * kMiB)), reuse_limit_(p.number("reuse_limit", 10)),
          level_(p.number("defrag_level", 0)) {}

    std::optional<Placement> allocate(int id, Bytes bytes, int stream) override {
        if (bytes < small_limit_) return allocate_small(id, bytes, stream);
        const Bytes n = round_up(bytes, kChunk);
        FreeRanges& free = free_[stream];
        const auto attempt_new = [&] { return add_segment(n < 10 * kMiB ? 20 * kMiB : n, stream); };
        // A free block, else the beginning of a stitched one.
        if (const auto place = free.best(n)) return take(id, stream, {{*place, n}}, *place, n);
        if (const Stitched* found = idle_stitched(n, stream)) return take_stitched(id, *found, n);
        if (level_ <= 0)
            if (auto stitched = stitch(n, stream)) return take_stitched(id, *stitched, n);
        auto place = attempt_new();
        if (!place && level_ <= 1)
            if (auto stitched = stitch(n, stream)) return take_stitched(id, *stitched, n);
        if (!place) {
            empty_cache();
            place = attempt_new();
        }
        if (!place && level_ <= 2)
            if (auto stitched = stitch(n, stream)) return take_stitched(id, *stitched, n);
        if (!place) return {};
        return take(id, stream, {{*place, n}}, *place, n);
    }
    void free(int id) override {
        const Live live = live_.extract(id).mapped();
        for (const auto& [start, size] : live.memory) (live.small ? small_ : free_)[live.stream].put(start, size);
    }
    void empty_cache() override {
        for (auto it = segments_.begin(); it != segments_.end();) {
            const auto& [start, segment] = *it;
            FreeRanges& free = (segment.small ? small_ : free_)[segment.stream];
            const auto range = free.ranges.find(start);
            const auto holds_it = [from = start, to = start + static_cast<Address>(segment.size)](
                                      const Stitched& block) {
                return std::any_of(block.memory.begin(), block.memory.end(),
                    [&](const Range& r) { return r.first >= from && r.first < to; });
            };
            // What a stitched block in use maps stays, even where the buffer does not reach.
            const bool mapped = std::any_of(stitched_.begin(), stitched_.end(), [&](const Stitched& block) {
                return holds_it(block) && std::any_of(live_.begin(), live_.end(),
                                              [&](const auto& live) { return live.second.place == block.start; });
            });
            if (range == free.ranges.end() || range->second != segment.size || mapped) {
                ++it;
                continue;
            }
            free.ranges.erase(range);
            std::erase_if(stitched_, holds_it);
            if (segment.small)
                device_.free(start, segment.size, {});
            else
                device_.unmap(start, segment.size, kChunk, {});
            it = segments_.erase(it);
        }
    }
    Bytes reserved() const override {
        Bytes sum = 0;
        for (const auto& [start, segment] : segments_) sum += segment.size;
        return sum;
    }

private:
    using Range = std::pair<Address, Bytes>;
    struct Segment {
        Bytes size;
        int stream;
        bool small;
    };
    struct Stitched {
        Address start;
        Bytes size;
        int stream;
        std::vector<Range> memory;
    };
    struct Live {
        std::vector<Range> memory;
        int stream;
        bool small;
        Address place;
    };

    std::optional<Placement> take(int id, int stream, const std::vector<Range>& memory, Address place, Bytes n) {
        for (const auto& [start, size] : memory) free_[stream].take(start, size);
        live_[id] = {memory, stream, false, place};
        return Placement{place, n};
    }
    std::optional<Placement> take_stitched(int id, const Stitched& block, Bytes n) {
        std::vector<Range> memory;
        Bytes left = n;
        for (const auto& [start, size] : block.memory) {
            if (left > 0) memory.emplace_back(start, std::min(left, size));
            left -= std::min(left, size);
        }
        return take(id, block.stream, memory, block.start, n);
    }
    std::optional<Placement> allocate_small(int id, Bytes bytes, int stream) {
        const Bytes n = round_up(bytes, 512);
        FreeRanges& free = small_[stream];
        const auto attempt = [&]() -> std::optional<Address> {
            if (const auto place = free.best(n)) return place;
            const auto got = device_.malloc(kSmallSegment, {});
            if (!got) return {};
            segments_[*got] = {kSmallSegment, stream, true};
            free.put(*got, kSmallSegment);
            return got;
        };
        auto place = attempt();
        if (!place) {
            empty_cache();
            place = attempt();
        }
        if (!place) return {};
        free.take(*place, n);
        live_[id] = {{{*place, n}}, stream, true, *place};
        return Placement{*place, n};
    }
    std::optional<Address> add_segment(Bytes size, int stream) {
        const Address start = device_.reserve(size, {});
        if (!device_.map(start, size, kChunk, {})) {
            device_.unreserve(start, size, {});
            return {};
        }
        segments_[start] = {size, stream, false};
        free_[stream].put(start, size);
        return start;
    }
    // The smallest that is wholly free and not too large, the oldest of equal ones.
    const Stitched* idle_stitched(Bytes n, int stream) {
        const Stitched* found = nullptr;
        for (const Stitched& block : stitched_) {
            const bool idle = std::all_of(block.memory.begin(), block.memory.end(),
                [&](const Range& r) { return free_[stream].around(r.first, r.second) != free_[stream].ranges.end(); });
            if (block.stream == stream && idle && block.size >= n && block.size <= reuse_limit_ * n &&
                (!found || block.size < found->size))
                found = &block;
        }
        return found;
    }
    std::optional<Stitched> stitch(Bytes n, int stream) {
        if (n < frag_limit_ || free_[stream].ranges.size() < 2) return {};
        std::vector<Range> free(free_[stream].ranges.begin(), free_[stream].ranges.end());
        std::stable_sort(free.begin(), free.end(), [](const Range& a, const Range& b) { return a.second > b.second; });
        Stitched block{0, n, stream, {}};
        Bytes left = n;
        for (const auto& [start, size] : free) {
            if (left > 0) block.memory.emplace_back(start, std::min(left, size));
            left -= std::min(left, size);
        }
        if (left > 0) return {};
        block.start = device_.reserve(n, {});
        stitched_.push_back(block);
        return block;
    }

    Device& device_;
    const Bytes small_limit_, frag_limit_, reuse_limit_, level_;
    std::map<Address, Segment> segments_;
    std::map<int, FreeRanges> free_, small_;  // by stream
    std::vector<Stitched> stitched_;          // oldest first
    std::map<int, Live> live_;
};

}  // namespace

std::unique_ptr<ReferencePolicy> reference_stitching_as_released(
    const ReferenceParameters& parameters, Device& device) {
    return std::make_unique<Released>(parameters, device);
}

}  // namespace fragsim::test
