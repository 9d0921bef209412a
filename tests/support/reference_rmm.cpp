// References of RMM's pool, arena and binning resources (spec/policies.md, section 3).
#include <deque>
#include <vector>

#include "lib/core/error.hpp"
#include "tests/support/reference_parts.hpp"

namespace fragsim::test {
namespace {

constexpr Bytes kAlign = 256;

// Whose list what is got at the start is in: the legacy default stream's, which comes before all others.
int initial_owner(const ReferenceParameters& p) { return p.flag("first_stream_is_default", false) ? 0 : -1; }

class RmmPool final : public ReferencePolicy {
public:
    RmmPool(const ReferenceParameters& p, Device& device)
        : device_(device), maximum_(p.number("maximum_pool_bytes", 0)) {
        if (const Bytes initial = p.number("initial_pool_bytes", 0)) expand(initial, initial, initial_owner(p));
    }

    std::optional<Placement> allocate(int id, Bytes bytes, int stream) override {
        const auto block = take(bytes, stream);
        if (block) live_[id] = {*block, stream};
        return block;
    }
    void free(int id) override {
        const auto [block, stream] = live_.extract(id).mapped();
        give_back(block, stream);
    }
    Bytes reserved() const override { return current_; }

    // For the bins, which are no buffers.
    std::optional<Placement> take(Bytes bytes, int stream) {
        const Bytes n = round_up(bytes, kAlign);
        list(stream);
        int owner = stream;
        auto place = list(stream).best(n);
        for (auto it = lists_.begin(); !place && it != lists_.end(); ++it)
            if ((place = it->second.best(n))) owner = it->first;
        for (auto it = lists_.begin(); !place && it != lists_.end();) {
            if (it->first == stream) {
                ++it;
                continue;
            }
            for (const auto& [start, size] : it->second.ranges) list(stream).put(start, size);
            it = lists_.erase(it);
            place = list(stream).best(n);
        }
        if (!place && size_to_grow(n) < n) reclaim(n, stream);
        if (!place && expand(size_to_grow(n), n, stream)) place = list(stream).best(n);
        if (!place) return {};
        list(owner).take(*place, n);
        return Placement{*place, n};
    }
    void give_back(const Placement& block, int stream) { list(stream).put(block.address, block.allocated); }

private:
    FreeRanges& list(int stream) {
        lists_[stream].walls = heads_;
        return lists_[stream];
    }
    Bytes size_to_grow(Bytes n) const {
        if (maximum_ == 0) return std::max(n, current_);
        const Bytes rest = round_up(maximum_ - current_, kAlign);
        return n <= rest ? std::max(n, rest / 2) : 0;
    }
    // Gives back what is wholly free, lowest first, until n bytes fit below the maximum.
    void reclaim(Bytes n, int stream) {
        if (n > maximum_) return;
        for (const auto& [start, size] : std::map(list(stream).ranges)) {
            if (maximum_ - current_ >= n) return;
            if (!heads_.contains(start) || from_device_.at(start) != size) continue;
            list(stream).ranges.erase(start);
            heads_.erase(start);
            device_.free(start, size, {});
            current_ -= size;
        }
    }
    bool expand(Bytes wanted, Bytes least, int stream) {
        while (wanted >= least) {
            if (const auto got = device_.malloc(wanted, {})) {
                heads_.insert(*got);
                from_device_[*got] = wanted;
                current_ += wanted;
                list(stream).put(*got, wanted);
                return true;
            }
            if (wanted == least) break;
            wanted = std::max(least, wanted / 2);
        }
        return false;
    }

    Device& device_;
    Bytes maximum_, current_ = 0;
    std::set<Address> heads_;          // where blocks from the device begin
    std::map<Address, Bytes> from_device_;
    std::map<int, FreeRanges> lists_;  // by stream
    std::map<int, std::pair<Placement, int>> live_;
};

class RmmBinning final : public ReferencePolicy {
public:
    RmmBinning(const ReferenceParameters& p, Device& device)
        : pool_(p, device), per_chunk_(p.number("blocks_per_chunk", 128)) {
        for (Bytes e = p.number("min_size_exponent", 18); e <= p.number("max_size_exponent", 22); ++e)
            bins_[Bytes{1} << e] = {};
        for (auto& [size, bin] : bins_) grow(size, initial_owner(p));
    }

    std::optional<Placement> allocate(int id, Bytes bytes, int stream) override {
        const auto bin = bins_.lower_bound(bytes);
        const auto block = bin == bins_.end() ? pool_.take(bytes, stream) : from_bin(bin->first, stream);
        if (block) live_[id] = {*block, stream, bin == bins_.end() ? 0 : bin->first};
        return block;
    }
    void free(int id) override {
        const Live live = live_.extract(id).mapped();
        if (live.bin == 0)
            pool_.give_back(live.block, live.stream);
        else
            bins_[live.bin][live.stream].push_back(live.block.address);
    }
    Bytes reserved() const override { return pool_.reserved(); }

private:
    struct Live {
        Placement block;
        int stream;
        Bytes bin;  // 0: from the pool
    };

    bool grow(Bytes size, int stream) {
        const auto chunk = pool_.take(size * per_chunk_, stream);
        if (!chunk) return false;
        for (Bytes i = 0; i < per_chunk_; ++i) bins_[size][stream].push_back(chunk->address + i * size);
        return true;
    }
    std::optional<Placement> from_bin(Bytes size, int stream) {
        auto& lists = bins_[size];
        std::deque<Address>* list = &lists[stream];
        for (auto& [other, blocks] : lists)
            if (list->empty()) list = &blocks;
        if (list->empty()) {
            if (!grow(size, stream)) return {};
            list = &lists[stream];
        }
        const Address place = list->front();
        list->pop_front();
        return Placement{place, size};
    }

    RmmPool pool_;
    Bytes per_chunk_;
    std::map<Bytes, std::map<int, std::deque<Address>>> bins_;  // block size, stream, free blocks in order of freeing
    std::map<int, Live> live_;
};

class RmmArena final : public ReferencePolicy {
public:
    RmmArena(const ReferenceParameters& p, Device& device) {
        size_ = p.number("arena_bytes", 0);
        if (size_ == 0) size_ = total_of(p, device) / 2 / kAlign * kAlign;
        if (const auto got = device.malloc(size_, {}))
            put_global(whole(*got, size_));
        else
            size_ = 0;
    }

    std::optional<Placement> allocate(int id, Bytes bytes, int stream) override {
        const Bytes n = round_up(bytes, kAlign);
        auto place = take(n, stream);
        if (!place) {  // every stream gives back what it has
            for (auto& [owner, blocks] : streams_)
                for (auto& [start, block] : std::exchange(blocks, {})) put_global(std::move(block));
            place = take(n, stream);
        }
        if (!place) return {};
        live_[id] = {{*place, n}, stream};
        return live_[id].first;
    }
    void free(int id) override {
        const auto [block, stream] = live_.extract(id).mapped();
        if (block.allocated > kSuper && free_in_global(block)) return;
        if (free_in(streams_[stream], block)) return;
        for (auto& [other, blocks] : streams_)
            if (free_in(blocks, block)) return;
        FRAGSIM_ASSERT(free_in_global(block));
    }
    Bytes reserved() const override { return size_; }

private:
    static constexpr Bytes kSuper = kMiB;
    struct Superblock {
        Address start;
        Bytes size;
        FreeRanges free;
        bool empty() const { return free.ranges.size() == 1 && free.ranges.begin()->second == size; }
        bool holds(const Placement& b) const { return start <= b.address && b.address + b.allocated <= start + size; }
    };
    using Superblocks = std::map<Address, Superblock>;  // by start

    static Superblock whole(Address start, Bytes size) { return {start, size, {{{start, size}}, {}}}; }

    std::optional<Superblock> first_fit_global(Bytes n) {
        for (auto& [start, found] : global_) {
            if (!found.free.first(n)) continue;
            Superblock block = global_.extract(start).mapped();
            const Bytes least = std::max(kSuper, n);
            if (block.empty() && block.size >= least + kSuper) {
                put_global(whole(block.start + least, block.size - least));
                block = whole(block.start, least);
            }
            return block;
        }
        return {};
    }
    void put_global(Superblock block) {
        for (auto it = global_.begin(); block.empty() && it != global_.end();) {
            const Superblock& other = it->second;
            const bool below = other.start + other.size == block.start, above = block.start + block.size == other.start;
            if (!other.empty() || !(below || above)) {
                ++it;
                continue;
            }
            block = whole(std::min(block.start, other.start), block.size + other.size);
            it = global_.erase(it);
        }
        const Address start = block.start;
        global_[start] = std::move(block);
    }
    static std::optional<Address> take_from(Superblock& block, Bytes n) {
        const auto place = block.free.first(n);
        if (place) block.free.take(*place, n);
        return place;
    }
    std::optional<Address> take(Bytes n, int stream) {
        Superblocks& own = streams_[stream];
        if (n <= kSuper)
            for (auto& [start, block] : own)
                if (const auto place = take_from(block, n)) return place;
        auto block = first_fit_global(n);
        if (!block) return {};
        const auto place = take_from(*block, n);
        const Address start = block->start;
        (n > kSuper ? global_ : own)[start] = std::move(*block);
        return place;
    }
    static bool free_in(Superblocks& blocks, const Placement& freed) {
        for (auto& [start, block] : blocks)
            if (block.holds(freed)) {
                block.free.put(freed.address, freed.allocated);
                return true;
            }
        return false;
    }
    bool free_in_global(const Placement& freed) {
        for (auto& [start, block] : global_)
            if (block.holds(freed)) {
                block.free.put(freed.address, freed.allocated);
                put_global(global_.extract(start).mapped());
                return true;
            }
        return false;
    }

    Bytes size_;
    Superblocks global_;
    std::map<int, Superblocks> streams_;
    std::map<int, std::pair<Placement, int>> live_;
};

}  // namespace

std::unique_ptr<ReferencePolicy> reference_rmm_policy(
    const std::string& name, const ReferenceParameters& parameters, Device& device) {
    if (name == "rmm-pool") return std::make_unique<RmmPool>(parameters, device);
    if (name == "rmm-arena") return std::make_unique<RmmArena>(parameters, device);
    if (name == "rmm-binning") return std::make_unique<RmmBinning>(parameters, device);
    return nullptr;
}

}  // namespace fragsim::test
