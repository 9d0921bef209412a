// Reference of the binary buddy (spec/policies.md, section 2).
#include <deque>
#include <vector>

#include "lib/core/error.hpp"
#include "tests/support/reference_parts.hpp"

namespace fragsim::test {
namespace {

class Buddy final : public ReferencePolicy {
public:
    Buddy(const ReferenceParameters& p, Device& device)
        : device_(device), min_(p.number("min_block_bytes", 512)), arena_(p.number("arena_bytes", kGiB)),
          max_arenas_(p.number("max_arenas", 0)), doubling_(p.flag("arena_doubling", false)),
          tail_trim_(p.flag("tail_trim", false)), lazy_(p.word("lazy", "off") == "svr4"),
          release_empty_(p.flag("release_empty", false)), huge_direct_(p.flag("huge_direct", true)) {}

    std::optional<Placement> allocate(int id, Bytes bytes, int) override {
        if (bytes > arena_) return huge_direct_ ? allocate_direct(id, bytes) : std::nullopt;
        Bytes block = min_;
        while (block < bytes) block *= 2;
        auto place = take(block);
        if (!place) {
            flush();
            place = take(block);
        }
        if (!place && grow(block)) place = take(block);
        if (!place) return {};
        ++allocated_[block];
        const Bytes kept = tail_trim_ ? round_up(bytes, min_) : block;
        give_back(*place + kept, block - kept);
        live_[id] = {{*place, kept}, block};
        return live_[id].placement;
    }
    void free(int id) override {
        const Live live = live_.extract(id).mapped();
        const auto [place, kept] = live.placement;
        if (live.block == 0) return device_.free(place, kept, {});
        std::deque<Address>& lazy = lazy_blocks_[live.block];
        const int slack = allocated_[live.block]-- - static_cast<int>(lazy.size());
        if (lazy_ && slack >= 2) return lazy.push_back(place);
        give_back(place, kept);
        if (lazy_ && slack <= 0 && !lazy.empty()) {
            give_back(lazy.front(), live.block);
            lazy.pop_front();
        }
        if (release_empty_) release_arenas();
    }
    void empty_cache() override {
        flush();
        release_arenas();
    }
    Bytes reserved() const override {
        Bytes sum = 0;
        for (const auto& [start, size] : arenas_) sum += size;
        for (const auto& [id, live] : live_) sum += live.block == 0 ? live.placement.allocated : 0;
        return sum;
    }

private:
    struct Live {
        Placement placement;
        Bytes block;  // 0: straight from the device
    };

    std::optional<Placement> allocate_direct(int id, Bytes bytes) {
        const Bytes n = round_up(bytes, min_);
        const auto got = device_.malloc(n, {});
        if (!got) return {};
        live_[id] = {{*got, n}, 0};
        return live_[id].placement;
    }
    std::optional<Address> take(Bytes block) {
        if (auto& lazy = lazy_blocks_[block]; !lazy.empty()) {
            const Address newest = lazy.back();
            lazy.pop_back();
            return newest;
        }
        for (auto& [size, blocks] : free_) {
            if (size < block || blocks.empty()) continue;
            const Address place = *blocks.begin();
            blocks.erase(blocks.begin());
            for (Bytes half = size / 2; half >= block; half /= 2) free_[half].insert(place + half);
            return place;
        }
        return {};
    }
    // Frees [address, address + bytes) in the largest aligned pieces, each joined with its buddy as long as that is
    // free.
    void give_back(Address address, Bytes bytes) {
        if (bytes == 0) return;
        const auto [start, arena_size] = *std::prev(arenas_.upper_bound(address));
        while (bytes > 0) {
            Bytes offset = address - start, size = min_;
            while (offset % (2 * size) == 0 && 2 * size <= bytes) size *= 2;
            address += size;
            bytes -= size;
            while (size < arena_size && free_[size].erase(start + (offset ^ size)) == 1) {
                offset = std::min(offset, offset ^ size);
                size *= 2;
            }
            free_[size].insert(start + offset);
        }
    }
    void flush() {
        for (auto& [block, lazy] : lazy_blocks_) {
            for (const Address place : std::set<Address>(lazy.begin(), lazy.end())) give_back(place, block);
            lazy.clear();
        }
    }
    bool grow(Bytes block) {
        if (max_arenas_ > 0 && static_cast<Bytes>(arenas_.size()) >= max_arenas_) return false;
        Bytes size = doubling_ ? arena_ << arenas_.size() : arena_;
        auto got = device_.malloc(size, {});
        while (!got && size / 2 >= block) got = device_.malloc(size /= 2, {});
        if (!got) return false;
        arenas_[*got] = size;
        free_[size].insert(*got);
        return true;
    }
    void release_arenas() {
        for (auto arena = arenas_.begin(); arena != arenas_.end();) {
            if (free_[arena->second].erase(arena->first) == 0) {
                ++arena;
                continue;
            }
            device_.free(arena->first, arena->second, {});
            arena = arenas_.erase(arena);
        }
    }

    Device& device_;
    const Bytes min_, arena_, max_arenas_;
    const bool doubling_, tail_trim_, lazy_, release_empty_, huge_direct_;
    std::map<Address, Bytes> arenas_;                   // start, size
    std::map<Bytes, std::set<Address>> free_;           // size, blocks
    std::map<Bytes, std::deque<Address>> lazy_blocks_;  // size, blocks freed but not joined, oldest first
    std::map<Bytes, int> allocated_;                    // size, blocks in use
    std::map<int, Live> live_;
};

}  // namespace

std::unique_ptr<ReferencePolicy> reference_buddy_policy(
    const std::string& name, const ReferenceParameters& parameters, Device& device) {
    return name == "buddy" ? std::make_unique<Buddy>(parameters, device) : nullptr;
}

}  // namespace fragsim::test
