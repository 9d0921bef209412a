// Reference of GMLake's stitching as the paper has it (spec/policies.md, section 7.1).
#include <algorithm>
#include <utility>
#include <vector>

#include "lib/core/error.hpp"
#include "tests/support/reference_parts.hpp"

namespace fragsim::test {
namespace {

class Stitching final : public ReferencePolicy {
public:
    Stitching(const ReferenceParameters& p, Device& device)
        : device_(device), chunk_(p.number("chunk_bytes", 2 * kMiB)), small_limit_(p.number("small_limit_bytes", kMiB)),
          frag_limit_(p.number("frag_limit_bytes", 2 * kMiB)), stitch_limit_(p.number("stitch_limit", 64)),
          stitches_last_(p.number("defrag_level", 0) > 0) {}

    std::optional<Placement> allocate(int id, Bytes bytes, int stream) override {
        if (bytes < small_limit_) return allocate_small(id, bytes, stream);
        const Bytes n = round_up(bytes, chunk_) / chunk_;
        const auto got = choose(n, stream);
        if (!got) {
            drop_stitched();
            return {};
        }
        for (const int member : members_of(*got)) primitive_[member].active = true;
        if (got->stitched) stitched_[got->id].used = ++clock_;
        live_[id] = {*got, {got->stitched ? stitched_[got->id].start : primitive_[got->id].start, n * chunk_}, stream};
        drop_stitched();
        return live_[id].placement;
    }
    void free(int id) override {
        const Live live = live_.extract(id).mapped();
        if (live.block.id == 0)
            small_[live.stream].put(live.placement.address, live.placement.allocated);
        else
            for (const int member : members_of(live.block)) primitive_[member].active = false;
    }
    void empty_cache() override {  // what is free from end to end, as it was got from the device
        for (auto segment = segments_.begin(); segment != segments_.end();) {
            bool free = false;
            for (auto& [stream, ranges] : small_) {
                const auto range = ranges.ranges.find(*segment);
                if (range == ranges.ranges.end() || range->second != kSmallSegment) continue;
                ranges.ranges.erase(range);
                free = true;
            }
            if (free) device_.free(*segment, kSmallSegment, {});
            segment = free ? segments_.erase(segment) : std::next(segment);
        }
        std::set<Address> kept;
        for (const auto& [id, block] : primitive_)
            if (block.active) kept.insert(block.segment);
        for (auto it = primitive_.begin(); it != primitive_.end();) {
            if (kept.contains(it->second.segment)) {
                ++it;
                continue;
            }
            std::erase_if(stitched_, [&](const auto& stitched) {
                const std::vector<int>& members = stitched.second.members;
                return std::find(members.begin(), members.end(), it->first) != members.end();
            });
            chunks_ -= it->second.chunks;
            device_.unmap(it->second.start, it->second.chunks * chunk_, chunk_, {});
            it = primitive_.erase(it);
        }
    }
    Bytes reserved() const override { return chunks_ * chunk_ + static_cast<Bytes>(segments_.size()) * kSmallSegment; }

private:
    static constexpr Bytes kSmallSegment = 2 * kMiB;
    struct Primitive {
        Bytes chunks;
        Address start, segment;  // where what it was cut from begins
        int stream;
        bool active;
    };
    struct Stitched {
        Bytes chunks;
        Address start;
        int stream;
        std::vector<int> members;  // primitive blocks, in order of address
        int used;
    };
    struct Block {
        int id;  // 0: in a small segment
        bool stitched;
        friend bool operator==(const Block&, const Block&) = default;
    };
    struct Live {
        Block block;
        Placement placement;
        int stream;
    };

    std::optional<Placement> allocate_small(int id, Bytes bytes, int stream) {
        const Bytes n = round_up(bytes, 512);
        FreeRanges& free = small_[stream];
        auto place = free.best(n);
        if (!place) {
            auto got = device_.malloc(kSmallSegment, {});
            if (!got) {  // as an ordinary caching allocator does
                empty_cache();
                got = device_.malloc(kSmallSegment, {});
            }
            if (!got) return {};
            segments_.insert(*got);
            free.put(*got, kSmallSegment);
            place = free.best(n);
        }
        free.take(*place, n);
        live_[id] = {{0, false}, {*place, n}, stream};
        return live_[id].placement;
    }

    std::vector<int> members_of(Block block) const {
        return block.stitched ? stitched_.at(block.id).members : std::vector{block.id};
    }
    bool idle(const Stitched& block) const {
        return std::none_of(block.members.begin(), block.members.end(), [&](int p) { return primitive_.at(p).active; });
    }
    int add_primitive(Bytes chunks, Address start, Address segment, int stream, bool active) {
        primitive_[++last_id_] = {chunks, start, segment, stream, active};
        return last_id_;
    }
    // Leaves `chunks` in the block; the rest becomes a block behind it, also in everything stitched of it.
    void split(int id, Bytes chunks) {
        const Primitive whole = primitive_[id];
        primitive_[id].chunks = chunks;
        const int rest = add_primitive(whole.chunks - chunks, whole.start + static_cast<Address>(chunks * chunk_),
            whole.segment, whole.stream, whole.active);
        for (auto& [key, block] : stitched_) {
            const auto at = std::find(block.members.begin(), block.members.end(), id);
            if (at != block.members.end()) block.members.insert(at + 1, rest);
        }
    }

    std::optional<int> create(Bytes chunks, int stream) {
        const Address start = device_.reserve(chunks * chunk_, {});
        if (!device_.map(start, chunks * chunk_, chunk_, {})) {
            device_.unreserve(start, chunks * chunk_, {});
            return {};
        }
        chunks_ += chunks;
        return add_primitive(chunks, start, start, stream, false);
    }
    std::optional<Block> choose(Bytes n, int stream) {
        // S1: of exactly that size, the lowest id.
        for (const auto& [id, block] : primitive_)
            if (block.stream == stream && !block.active && block.chunks == n) return Block{id, false};
        for (const auto& [id, block] : stitched_)
            if (block.stream == stream && idle(block) && block.chunks == n) return Block{id, true};
        // S2: the smallest larger one.
        std::vector<std::pair<Bytes, int>> inactive;  // -chunks, id: largest first
        for (const auto& [id, block] : primitive_)
            if (block.stream == stream && !block.active) inactive.emplace_back(-block.chunks, id);
        std::sort(inactive.begin(), inactive.end());
        std::optional<std::pair<Bytes, int>> larger;
        for (const auto& [chunks, id] : inactive)
            if (-chunks > n && (!larger || std::pair(-chunks, id) < *larger)) larger = {-chunks, id};
        if (larger) {
            split(larger->second, n);
            return Block{larger->second, false};
        }
        // Level 1: new memory alone, if there is any.
        if (stitches_last_)
            if (const auto created = create(n, stream)) return Block{*created, false};
        // S3: several, the largest first, S4: and new memory for what is missing.
        std::vector<int> picked;
        Bytes sum = 0;
        for (const auto& [chunks, id] : inactive) {
            if (sum >= n || -chunks * chunk_ < frag_limit_) continue;
            picked.push_back(id);
            sum += -chunks;
        }
        if (sum < n) {
            const auto created = create(n - sum, stream);
            if (!created) return {};
            picked.push_back(*created);
            sum = n;
        }
        if (sum > n) split(picked.back(), primitive_[picked.back()].chunks - (sum - n));
        if (picked.size() == 1) return Block{picked.front(), false};
        stitched_[++last_id_] = {n, device_.reserve(n * chunk_, {}), stream, picked, 0};
        return Block{last_id_, true};
    }
    // After every request: the limit is one for all streams.
    void drop_stitched() {
        while (static_cast<Bytes>(stitched_.size()) > stitch_limit_) {
            auto oldest = stitched_.end();
            for (auto it = stitched_.begin(); it != stitched_.end(); ++it) {
                const bool in_use = std::any_of(live_.begin(), live_.end(), [&](const auto& live) {
                    return live.second.block == Block{it->first, true};
                });
                if (!in_use && (oldest == stitched_.end() || it->second.used < oldest->second.used)) oldest = it;
            }
            if (oldest == stitched_.end()) return;
            stitched_.erase(oldest);
        }
    }

    Device& device_;
    const Bytes chunk_, small_limit_, frag_limit_, stitch_limit_;
    const bool stitches_last_;
    Bytes chunks_ = 0;
    int last_id_ = 0, clock_ = 0;
    std::map<int, Primitive> primitive_;
    std::map<int, Stitched> stitched_;
    std::map<int, FreeRanges> small_;  // by stream
    std::set<Address> segments_;
    std::map<int, Live> live_;
};

}  // namespace

std::unique_ptr<ReferencePolicy> reference_stitching_policy(
    const std::string& name, const ReferenceParameters& parameters, Device& device) {
    if (name != "stitching") return nullptr;
    if (parameters.word("variant", "paper") == "released") return reference_stitching_as_released(parameters, device);
    return std::make_unique<Stitching>(parameters, device);
}

}  // namespace fragsim::test
