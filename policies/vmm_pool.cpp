// A pool over virtual memory: addresses are plenty, blocks of memory move under them.
//
// Rationale: memory that is free in the wrong place is not lost when it can be mapped elsewhere. Approach: best fit
// over free mapped ranges; when none fits, best fit over free addresses, and the blocks missing there are taken from
// wholly free blocks elsewhere, lowest first, before any is created. Source: spec/policies.md, section 6.2 (NVIDIA
// DALI, include/dali/core/mm/cuda_vm_resource.h). Differences from upstream: frees are complete when the policy hears
// of them, and the host does not wait for the device; one range of addresses for the whole run.
//
//   addresses  [live|free, mapped  |free, unmapped      |live|free ...          a free address range may hold both
//   blocks     [     0     ][     1     ][     -     ][     3     ][ ...
#include <algorithm>
#include <bit>
#include <map>

#include "lib/core/ordered_blocks.hpp"
#include "lib/policy/accounting_policy.hpp"
#include "lib/policy/address_ordered_blocks.hpp"
#include "lib/policy/parameters.hpp"

namespace fragsim {
namespace {

// Disjoint address ranges that join where they touch, by address and by (size, address). Addresses count from the
// pool's base.
class Ranges {
public:
    void insert(Bytes start, Bytes size) {
        if (const auto* next = by_address_.at_or_below(static_cast<Address>(start + size));
            next && start_of(*next) == start + size) {
            const AddressOrderedBlocks::Entry joined = *next;
            size += joined.size;
            erase(joined);
        }
        if (const auto* prev = by_address_.at_or_below(static_cast<Address>(start));
            prev && start_of(*prev) + prev->size == start) {
            const AddressOrderedBlocks::Entry joined = *prev;
            start = start_of(joined);
            size += joined.size;
            erase(joined);
        }
        add(start, size);
    }
    // [start, start + size) must lie in one range.
    void remove(Bytes start, Bytes size) {
        const AddressOrderedBlocks::Entry range = *by_address_.at_or_below(static_cast<Address>(start));
        const Bytes begin = start_of(range), end = begin + range.size;
        erase(range);
        if (begin < start) add(begin, start - begin);
        if (start + size < end) add(start + size, end - start - size);
    }
    // The smallest range, the lowest among equals, that holds `size` bytes from a multiple of `align` on: that place.
    std::optional<Bytes> best_fit(Bytes size, Bytes align) const {
        for (auto p = by_size_.lower_bound(size); p != OrderedBlocks::end(); p = by_size_.next(p)) {
            const auto start = static_cast<Bytes>(by_size_.key(p).tie);
            if (round_up(start, align) + size <= start + by_size_.size(p)) return round_up(start, align);
        }
        return {};
    }
    template <class Visit>
    void for_each(Visit visit) const {  // visit(start, size), by address
        by_address_.for_each([&](const AddressOrderedBlocks::Entry& entry) { visit(start_of(entry), entry.size); });
    }
    Bytes largest() const { return by_size_.largest(); }

private:
    static Bytes start_of(const AddressOrderedBlocks::Entry& entry) { return static_cast<Bytes>(entry.address); }
    void add(Bytes start, Bytes size) {
        by_address_.insert(static_cast<Address>(start), size, 0);
        by_size_.insert({size, static_cast<std::uint64_t>(start)}, 0);
    }
    void erase(const AddressOrderedBlocks::Entry& range) {
        by_size_.erase(OrderedBlocks::Key{range.size, range.address});
        by_address_.erase(range.address);
    }

    AddressOrderedBlocks by_address_;
    OrderedBlocks by_size_;
};

enum class Remap { unmap_reuse, off, release_then_create };

struct VmmConfig {
    Bytes block, range, least_align;
    Remap remap;
    bool trims;
};

class VmmPool final : public AccountingPolicy {
public:
    VmmPool(const VmmConfig& config, Device& device)
        : AccountingPolicy(device, StreamOrder::inserted), config_(config) {}

    Bytes alignment() const override { return std::min<Bytes>(config_.least_align, 512); }
    Bytes largest_free() const override { return mapped_free_.largest(); }
    void free_sizes(std::vector<Bytes>& out) const override {
        mapped_free_.for_each([&](Bytes, Bytes size) { out.push_back(size); });
    }
    void empty_cache() override;
    MemoryPicture picture() const override;
    Bytes page_of(const SegmentPicture&) const override { return config_.block; }

private:
    std::optional<Place> place(const Request& request) override;
    void give_back(const Place& place, StreamId stream) override;

    bool back(Bytes start, Bytes size, StreamId stream);
    std::vector<Bytes> idle_blocks(Bytes first, Bytes last, std::size_t most) const;
    void unmap(Bytes block, StreamId stream);
    bool is_mapped(Bytes block) const {
        return block < static_cast<Bytes>(mapped_.size()) && mapped_[static_cast<std::size_t>(block)];
    }
    void set_mapped(Bytes block, bool mapped) {
        if (block >= static_cast<Bytes>(mapped_.size())) mapped_.resize(static_cast<std::size_t>(block) + 1);
        mapped_[static_cast<std::size_t>(block)] = mapped;
    }
    Address address(Bytes offset) const { return base_ + static_cast<Address>(offset); }
    void count_use(Bytes start, Bytes size, std::int32_t change);
    void count_split(Bytes handed_out);

    VmmConfig config_;
    Address base_ = 0;                   // of the reserved range; 0: not reserved yet
    Ranges mapped_free_, address_free_;  // every free mapped byte is in both
    std::vector<bool> mapped_;           // by block
    std::vector<std::int32_t> users_;    // by block: buffers that lie in it
    Bytes in_use_ = 0;                   // blocks with any
};

std::optional<AccountingPolicy::Place> VmmPool::place(const Request& request) {
    if (request.bytes > config_.range) return {};
    if (base_ == 0) {
        base_ = device_.reserve(config_.range, request.stream);
        address_free_.insert(0, config_.range);
    }
    // Requests are aligned to about a 2048th of their size.
    const auto wanted = static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(request.bytes >> 11)));
    const Bytes align = std::clamp(wanted, config_.least_align, config_.block);
    const Bytes size = round_up(request.bytes, align);
    std::optional<Bytes> start = mapped_free_.best_fit(size, align);
    if (!start) {
        start = address_free_.best_fit(size, align);
        if (!start || !back(*start, size, request.stream)) return {};
    }
    mapped_free_.remove(*start, size);
    address_free_.remove(*start, size);
    count_use(*start, size, 1);
    count_split(size);
    return Place{address(*start), size, 0};
}

void VmmPool::give_back(const Place& place, StreamId) {
    const auto start = static_cast<Bytes>(place.address - base_);
    mapped_free_.insert(start, place.size);
    address_free_.insert(start, place.size);
    count_use(start, place.size, -1);
    count_split(0);
}

void VmmPool::count_use(Bytes start, Bytes size, std::int32_t change) {
    const auto first = static_cast<std::size_t>(start / config_.block),
               last = static_cast<std::size_t>((start + size - 1) / config_.block);
    if (last >= users_.size()) users_.resize(last + 1);
    for (std::size_t block = first; block <= last; ++block) {
        in_use_ -= users_[block] > 0;
        users_[block] += change;
        in_use_ += users_[block] > 0;
    }
}

// Free memory in blocks that hold anything in use counts as inactive split; `handed_out`: bytes that are not yet
// active.
void VmmPool::count_split(Bytes handed_out) {
    const Bytes split = in_use_ * config_.block - stats_.active_bytes.all.current - handed_out;
    stats_.inactive_split_bytes.all.change(split - stats_.inactive_split_bytes.all.current);
}

// Maps what is missing under [start, start + size).
bool VmmPool::back(Bytes start, Bytes size, StreamId stream) {
    const Bytes first = start / config_.block, last = (start + size - 1) / config_.block;
    std::vector<Bytes> missing;
    for (Bytes block = first; block <= last; ++block)
        if (!is_mapped(block)) missing.push_back(block);
    std::vector<Bytes> idle;
    if (config_.remap != Remap::off) idle = idle_blocks(first, last, missing.size());

    std::size_t next = 0;
    std::vector<Bytes> created;
    // What has to be created is created first, so that a refusal changes nothing.
    for (std::size_t i = idle.size(); i < missing.size(); ++i) {
        if (device_.map(address(missing[i] * config_.block), config_.block, config_.block, stream)) {
            created.push_back(missing[i]);
            add_reserved(config_.block, 1);
            continue;
        }
        for (const Bytes block : created) {
            device_.unmap(address(block * config_.block), config_.block, config_.block, stream);
            remove_reserved(config_.block, 1);
        }
        return false;
    }
    for (const Bytes from : idle) {
        const Bytes to = missing[next++];
        mapped_free_.remove(from * config_.block, config_.block);
        set_mapped(from, false);
        if (config_.remap == Remap::unmap_reuse) {
            device_.move(address(from * config_.block), address(to * config_.block), config_.block, stream);
            continue;
        }
        device_.unmap(address(from * config_.block), config_.block, config_.block, stream);
        device_.map(address(to * config_.block), config_.block, config_.block, stream);
    }
    for (const Bytes block : missing) {
        set_mapped(block, true);
        mapped_free_.insert(block * config_.block, config_.block);
    }
    return true;
}

// Wholly free mapped blocks outside [first, last], lowest first.
std::vector<Bytes> VmmPool::idle_blocks(Bytes first, Bytes last, std::size_t most) const {
    std::vector<Bytes> found;
    mapped_free_.for_each([&](Bytes start, Bytes size) {
        Bytes block = (start + config_.block - 1) / config_.block;
        for (; found.size() < most && (block + 1) * config_.block <= start + size; ++block)
            if (block < first || block > last) found.push_back(block);
    });
    return found;
}

void VmmPool::unmap(Bytes block, StreamId stream) {
    device_.unmap(address(block * config_.block), config_.block, config_.block, stream);
    mapped_free_.remove(block * config_.block, config_.block);
    set_mapped(block, false);
    remove_reserved(config_.block, 1);
}

void VmmPool::empty_cache() {
    if (!config_.trims) return;
    for (const Bytes block : idle_blocks(0, -1, mapped_.size())) unmap(block, {0});
}

MemoryPicture VmmPool::picture() const {
    // Borders of everything that lies in mapped memory, then the pieces between them.
    std::map<Bytes, std::pair<Bytes, BufferId>> pieces;
    mapped_free_.for_each([&](Bytes start, Bytes size) { pieces[start] = {size, {}}; });
    for (std::uint32_t i = 0; i < buffers().size(); ++i)
        if (buffers()[i].state != BlockState::inactive)
            pieces[static_cast<Bytes>(buffers()[i].place.address - base_)] = {buffers()[i].place.size, {i}};
    MemoryPicture picture;
    Bytes end = -1;
    for (const auto& [start, piece] : pieces) {
        const auto& [size, buffer] = piece;
        if (start != end)
            picture.segments.push_back(
                {address(start), 0, {0}, 0, false, true, static_cast<std::uint32_t>(picture.blocks.size()), 0});
        picture.blocks.push_back({address(start), size, buffer ? buffers()[buffer.value].requested : 0, buffer,
            buffer ? buffers()[buffer.value].state : BlockState::inactive});
        picture.segments.back().size += size;
        ++picture.segments.back().block_count;
        end = start + size;
    }
    return picture;
}

}  // namespace

PolicyInfo vmm_pool_policy() {
    PolicyInfo info;
    info.name = "vmm-pool";
    info.summary =
        "a pool over virtual memory: free blocks are unmapped and mapped again where they are needed.\n"
        "Only holes smaller than a block are lost; every move costs driver calls.";
    info.reference = "NVIDIA DALI cuda_vm_resource.h";
    info.remaps = true;
    info.parameters = {
        {"block_bytes", "bytes", "0",
            "unit of memory, a power of two of at least 2 MiB; 0: a 256th of the card, at most 64 MiB"},
        {"va_factor", "ratio", "16",
            "addresses reserved, in multiples of the capacity or the card's memory; upstream has 2 and gets more"},
        {"align_min_bytes", "bytes", "256", "least alignment; a power of two"},
        {"remap", "unmap_reuse|off|release_then_create", "unmap_reuse",
            "free blocks move, stay where they are, or are given back and got anew"},
        {"trim", "never|on_empty_cache", "never", "when free blocks go back to the device"},
    };
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("vmm-pool", known, given);
        VmmConfig config{};
        if (read.bytes("block_bytes") != 0) config.block = read.power_of_two("block_bytes", 2 * kMiB);
        if (config.block == 0) {
            const auto part = std::bit_ceil(static_cast<std::uint64_t>(context.budget() / 256));
            config.block = std::clamp<Bytes>(static_cast<Bytes>(part), 2 * kMiB, 64 * kMiB);
        }
        config.range = round_up(
            static_cast<Bytes>(read.ratio("va_factor", 1, 1000) * static_cast<double>(context.budget())), config.block);
        config.least_align = read.power_of_two("align_min_bytes", 1);
        config.remap = read.choice<Remap>("remap");
        config.trims = read.choice<int>("trim") == 1;
        return std::make_unique<VmmPool>(config, context.device);
    };
    return info;
}

}  // namespace fragsim
