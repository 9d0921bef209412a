// References of TensorFlow's BFC allocator (spec/policies.md, section 4) and of DALI's pool over virtual memory (6.2).
#include <bit>
#include <vector>

#include "lib/core/error.hpp"
#include "tests/support/reference_parts.hpp"

namespace fragsim::test {
namespace {

class Bfc final : public ReferencePolicy {
public:
    Bfc(const ReferenceParameters& p, Device& device)
        : device_(device), limit_(p.number("memory_limit_bytes", 0)),
          waste_(p.number("max_internal_fragmentation_bytes", 128 * kMiB)),
          collects_(p.flag("garbage_collection", true)), backpedal_once_(p.flag("backpedal_once", false)),
          virtual_(p.word("suballocator", "virtual_memory") == "virtual_memory") {
        const Bytes total = total_of(p, device);
        const bool given = limit_ > 0;
        if (!given) limit_ = static_cast<Bytes>(p.ratio("memory_fraction", 1) * static_cast<double>(total));
        if (virtual_) limit_ = round_up(limit_, kPage);
        if (virtual_ && !given && limit_ > total) limit_ -= kPage;
        next_region_ = round_up(p.flag("allow_growth", true) ? std::min(limit_, 2 * kMiB) : limit_, kAlign);
    }

    std::optional<Placement> allocate(int id, Bytes bytes, int) override {
        const Bytes n = round_up(bytes, kAlign);
        auto place = free_.best(n);
        if (!place && extend(n)) place = free_.best(n);
        if (!place && collects_ && collect(n) && extend(n)) place = free_.best(n);
        if (!place) return {};
        const Bytes size = free_.ranges.at(*place);
        const Bytes given = size >= 2 * n || size - n >= waste_ ? n : size;
        free_.take(*place, given);
        live_[id] = {*place, given};
        return live_[id];
    }
    void free(int id) override {
        const Placement block = live_.extract(id).mapped();
        free_.put(block.address, block.allocated);
    }
    Bytes reserved() const override {
        Bytes sum = 0;
        for (const auto& [start, size] : regions_) sum += size;
        return sum;
    }

private:
    static constexpr Bytes kAlign = 256, kPage = 2 * kMiB;

    std::optional<Address> region(Bytes& bytes) {
        if (!virtual_) return device_.malloc(bytes, {});
        const Bytes pages = round_up(bytes, kPage);
        const Address start = device_.reserve(pages, {});
        if (device_.map(start, pages, pages, {})) {
            bytes = pages;
            return start;
        }
        device_.unreserve(start, pages, {});
        return {};
    }
    bool extend(Bytes n) {
        const Bytes available = (limit_ - reserved()) / kAlign * kAlign;
        if (n > available) return false;
        bool grown = false;
        for (; n > next_region_; grown = true) next_region_ *= 2;
        Bytes bytes = std::min(next_region_, available);
        auto got = region(bytes);
        if (!got && !(backpedal_once_ && backed_off_)) {
            backed_off_ = true;
            while (!got) {
                const Bytes less = round_up(bytes * 9 / 10, kAlign);
                bytes = less < bytes ? less : bytes - kAlign;
                if (bytes < n) return false;
                got = region(bytes);
            }
        }
        if (!got) return false;
        if (!grown) next_region_ *= 2;
        regions_[*got] = bytes;
        free_.walls.insert(*got);
        free_.put(*got, bytes);
        return true;
    }
    // Gives back the regions that are wholly free, if that makes room for n.
    bool collect(Bytes n) {
        std::map<Address, Bytes> idle;
        Bytes sum = 0;
        for (const auto& [start, size] : regions_)
            if (const auto range = free_.ranges.find(start); range != free_.ranges.end() && range->second == size)
                idle[start] = size, sum += size;
        if (idle.empty() || n > limit_ - reserved() + sum) return false;
        for (const auto& [start, size] : idle) {
            free_.ranges.erase(start);
            regions_.erase(start);
            if (virtual_) {
                device_.unmap(start, size, size, {});
                device_.unreserve(start, size, {});
            } else {
                device_.free(start, size, {});
            }
        }
        return true;
    }

    Device& device_;
    Bytes limit_, next_region_;
    const Bytes waste_;
    const bool collects_, backpedal_once_, virtual_;
    bool backed_off_ = false;
    std::map<Address, Bytes> regions_;
    FreeRanges free_;
    std::map<int, Placement> live_;
};

class VmmPool final : public ReferencePolicy {
public:
    VmmPool(const ReferenceParameters& p, Device& device)
        : device_(device), block_(p.number("block_bytes", 0)), align_min_(p.number("align_min_bytes", 256)),
          remap_(p.word("remap", "unmap_reuse")), trims_(p.word("trim", "never") == "on_empty_cache") {
        const Bytes total = device.total_memory();
        if (block_ == 0) block_ = std::clamp(power_of_two(total / 256), 2 * kMiB, 64 * kMiB);
        next_reservation_ = round_up(static_cast<Bytes>(p.ratio("va_factor", 2) * static_cast<double>(total)), block_);
    }

    std::optional<Placement> allocate(int id, Bytes bytes, int) override {
        const Bytes align = std::clamp(power_of_two(bytes >> 11), align_min_, block_);
        const Bytes n = round_up(bytes, align);
        auto place = best(mapped_, n, align);
        if (!place) {
            place = best(space_, n, align);
            while (!place) {
                space_.put(device_.reserve(next_reservation_, {}), next_reservation_);
                next_reservation_ *= 2;
                place = best(space_, n, align);
            }
            if (!back(*place, n)) return {};
        }
        mapped_.take(*place, n);
        space_.take(*place, n);
        live_[id] = {*place, n};
        return live_[id];
    }
    void free(int id) override {
        const Placement block = live_.extract(id).mapped();
        mapped_.put(block.address, block.allocated);
        space_.put(block.address, block.allocated);
    }
    void empty_cache() override {
        if (trims_)
            for (const Address block : available(0, 0)) unmap(block);
    }
    Bytes reserved() const override { return static_cast<Bytes>(blocks_.size()) * block_; }

private:
    static Bytes power_of_two(Bytes n) { return static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(n))); }
    // The smallest range that holds n bytes at an aligned place, the lowest of equal ones.
    static std::optional<Address> best(const FreeRanges& free, Bytes n, Bytes align) {
        std::optional<std::pair<Bytes, Address>> found;
        for (const auto& [start, size] : free.ranges) {
            const Bytes skipped = round_up(start, align) - static_cast<Bytes>(start);
            if (skipped + n <= size && (!found || size < found->first)) found = {size, start + skipped};
        }
        return found ? std::optional(found->second) : std::nullopt;
    }
    // Mapped blocks that are wholly free, outside [from, to).
    std::vector<Address> available(Address from, Address to) {
        std::vector<Address> all;
        for (const Address block : blocks_)
            if ((block < from || block >= to) && mapped_.around(block, block_) != mapped_.ranges.end())
                all.push_back(block);
        return all;
    }
    void unmap(Address block) {
        mapped_.take(block, block_);
        blocks_.erase(block);
        device_.unmap(block, block_, block_, {});
    }
    bool back(Address place, Bytes n) {
        const Address from = place / block_ * block_, to = round_up(place + n, block_);
        std::vector<Address> need;
        for (Address block = from; block < to; block += block_)
            if (!blocks_.contains(block)) need.push_back(block);
        std::vector<Address> moved;
        if (remap_ != "off") moved = available(from, to);  // moved, or released and created anew
        if (moved.size() > need.size()) moved.resize(need.size());
        for (const Address block : moved) unmap(block);
        for (std::size_t i = 0; i < need.size(); ++i) {
            if (!device_.map(need[i], block_, block_, {})) {  // nothing has changed
                for (std::size_t k = 0; k < i; ++k) unmap(need[k]);
                for (const Address block : moved) map(block);
                return false;
            }
            blocks_.insert(need[i]);
            mapped_.put(need[i], block_);
        }
        return true;
    }
    void map(Address block) {
        FRAGSIM_ASSERT(device_.map(block, block_, block_, {}));
        blocks_.insert(block);
        mapped_.put(block, block_);
    }

    Device& device_;
    Bytes block_, next_reservation_ = 0;
    const Bytes align_min_;
    const std::string remap_;
    const bool trims_;
    std::set<Address> blocks_;   // mapped
    FreeRanges mapped_, space_;  // free memory; free address space, that under free memory included
    std::map<int, Placement> live_;
};

}  // namespace

std::unique_ptr<ReferencePolicy> reference_framework_policy(
    const std::string& name, const ReferenceParameters& parameters, Device& device) {
    if (name == "bfc") return std::make_unique<Bfc>(parameters, device);
    if (name == "vmm-pool") return std::make_unique<VmmPool>(parameters, device);
    return nullptr;
}

}  // namespace fragsim::test
