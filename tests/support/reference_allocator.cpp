#include "tests/support/reference_allocator.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace fragsim::test {
namespace {

enum class Use { free, allocated, pending };

struct Block {
    Bytes size, requested;
    std::size_t segment;  // how many segments were got before: the age
    std::uint32_t stream;
    bool small;
    Use use;
    BufferId buffer;
    std::int64_t free_since;  // lookups of the pool when it became free
};
using Blocks = std::map<Address, Block>;

class ReferenceAllocator final : public Policy {
public:
    ReferenceAllocator(const ReferenceSettings& settings, Device& device) : set_(settings), device_(device) {
        if (set_.limits.memory_limit) limit_ = *set_.limits.memory_limit;
        if (!set_.limits.capacity) return;
        const double part = set_.fraction * static_cast<double>(*set_.limits.capacity);
        if (set_.fraction < 1 && !set_.limits.memory_limit)
            limit_ = static_cast<Bytes>(set_.by_serial ? part + 0.5 : part);
        if (set_.rejects) reject_above_ = static_cast<Bytes>(part);
    }

    std::optional<Placement> allocate(BufferId buffer, const Request& request) override;
    void free(BufferId buffer) override {
        free_requested(buffer);
        free_completed(buffer);
    }
    void free_requested(BufferId buffer) override {
        find(buffer)->second.use = Use::pending;
        pending_.push_back(buffer);
        count();
    }
    void free_completed(BufferId buffer) override {
        if (find(buffer) != blocks_.end()) retire(find(buffer));
        std::erase(pending_, buffer);
    }
    void empty_cache() override { release_cached(); }

    const AllocatorStats& stats() const override { return stats_; }
    Bytes largest_free() const override {
        Bytes largest = 0;
        for (const auto& [address, block] : blocks_)
            if (block.use == Use::free) largest = std::max(largest, block.size);
        return largest;
    }
    void free_sizes(std::vector<Bytes>& out) const override {
        for (const auto& [address, block] : blocks_)
            if (block.use == Use::free) out.push_back(block.size);
    }
    MemoryPicture picture() const override;

private:
    Blocks::iterator find(BufferId buffer) {
        return std::find_if(blocks_.begin(), blocks_.end(),
            [&](const auto& b) { return b.second.use != Use::free && b.second.buffer == buffer; });
    }
    bool capped() const { return set_.max_split >= 0; }
    bool oversize(Bytes bytes) const { return capped() && bytes >= set_.max_split; }
    bool collects() const { return limit_ && set_.gc_threshold > 0; }
    Bytes reserved() const {
        Bytes sum = 0;
        for (const auto& [address, block] : blocks_) sum += block.size;
        return sum;
    }
    // The neighbours of a block inside its segment; end() where there is none.
    Blocks::iterator before(Blocks::iterator it) {
        return it == blocks_.begin() || std::prev(it)->second.segment != it->second.segment ? blocks_.end()
                                                                                            : std::prev(it);
    }
    Blocks::iterator after(Blocks::iterator it) {
        return std::next(it) == blocks_.end() || std::next(it)->second.segment != it->second.segment ? blocks_.end()
                                                                                                     : std::next(it);
    }
    bool is_split(Blocks::iterator it) { return before(it) != blocks_.end() || after(it) != blocks_.end(); }

    // A pool's free blocks in the order of section 4.2.
    std::vector<Address> free_blocks(bool small) const {
        std::vector<Address> found;
        for (const auto& [address, block] : blocks_)
            if (block.use == Use::free && block.small == small) found.push_back(address);
        std::sort(found.begin(), found.end(), [&](Address a, Address b) { return order(a) < order(b); });
        return found;
    }
    std::tuple<std::uint32_t, Bytes, std::size_t, Address> order(Address address) const {
        const Block& block = blocks_.at(address);
        return {block.stream, block.size, set_.by_serial ? block.segment : 0, address};
    }

    Bytes round(Bytes n) const;
    Blocks::iterator take(bool small, Bytes size, std::uint32_t stream);
    Blocks::iterator grow(bool small, Bytes size, std::uint32_t stream);
    Blocks::iterator new_segment(bool small, Bytes size, std::uint32_t stream);
    void retire(Blocks::iterator it);
    void collect_garbage();
    bool release_oversize(bool small, Bytes size, std::uint32_t stream);
    void release_cached();
    void release(Address segment);
    void count();

    ReferenceSettings set_;
    Device& device_;
    std::optional<Bytes> limit_, reject_above_;
    Blocks blocks_;
    std::vector<BufferId> pending_;
    std::size_t segments_ = 0;
    std::int64_t lookups_[2]{};  // large, small
    bool rejected_ = false;
    AllocatorStats stats_;
};

Bytes ReferenceAllocator::round(Bytes n) const {  // section 3
    if (n < 512) return 512;
    int octave = 0;  // of MiB
    while (octave < 15 && n >= (Bytes{2} << octave) * kMiB) ++octave;
    const Bytes d = set_.divisions[static_cast<std::size_t>(octave)];
    if (d > 1 && n > 512 * d) {
        Bytes power = 1;
        while (2 * power <= n) power *= 2;
        Bytes rounded = power;
        while (rounded < n) rounded += power / d;
        return rounded;
    }
    return (n + 511) / 512 * 512;
}

std::optional<Placement> ReferenceAllocator::allocate(BufferId buffer, const Request& request) {
    if (request.bytes > Bytes{1} << 60) {
        ++stats_.num_ooms;
        return {};
    }
    const Bytes size = round(request.bytes);
    const bool small = size <= kMiB;
    auto it = take(small, size, request.stream.value);
    if (it == blocks_.end()) it = grow(small, size, request.stream.value);
    if (it == blocks_.end()) {
        ++(rejected_ ? stats_.num_oom_rejections : stats_.num_ooms);
        return {};
    }
    Block& block = it->second;
    const Bytes rest = block.size - size;
    if (small ? rest >= 512 : !oversize(size) && rest > kMiB) {  // section 6.2
        Block remainder = block;
        remainder.size = rest;
        remainder.free_since = lookups_[small];
        block.size = size;
        blocks_[it->first + static_cast<Address>(size)] = remainder;
        ++stats_.num_splits;
    }
    block.use = Use::allocated;
    block.requested = request.bytes;
    block.buffer = buffer;
    count();
    return Placement{it->first, block.size};
}

Blocks::iterator ReferenceAllocator::take(bool small, Bytes size, std::uint32_t stream) {  // section 6.1
    if (collects()) ++lookups_[small];
    for (const Address address : free_blocks(small)) {
        const Block& block = blocks_.at(address);
        if (block.stream != stream || block.size < size) continue;
        if (!oversize(size) && oversize(block.size)) return blocks_.end();
        if (oversize(size) && block.size >= size + set_.slack) return blocks_.end();
        return blocks_.find(address);
    }
    return blocks_.end();
}

Blocks::iterator ReferenceAllocator::grow(bool small, Bytes size, std::uint32_t stream) {  // section 5, D
    rejected_ = false;
    if (collects()) collect_garbage();
    auto it = new_segment(small, size, stream);
    if (rejected_) return it;
    if (it == blocks_.end() && capped() && release_oversize(small, size, stream)) it = new_segment(small, size, stream);
    if (it == blocks_.end() && !rejected_) {
        release_cached();
        ++stats_.num_alloc_retries;
        it = new_segment(small, size, stream);
    }
    return it;
}

Blocks::iterator ReferenceAllocator::new_segment(bool small, Bytes size, std::uint32_t stream) {  // section 7
    const Bytes bytes = small              ? 2 * kMiB
                        : size < 10 * kMiB ? set_.large_segment
                                           : (size + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
    if (limit_ && reserved() + bytes > *limit_) return blocks_.end();
    if (reject_above_ && reserved() + bytes > *reject_above_) {
        rejected_ = true;
        return blocks_.end();
    }
    const auto address = device_.malloc(bytes, {stream});
    if (!address) return blocks_.end();
    ++stats_.num_device_alloc;
    return blocks_.emplace(*address, Block{bytes, 0, segments_++, stream, small, Use::free, {}, 0}).first;
}

void ReferenceAllocator::retire(Blocks::iterator it) {  // section 10.2
    std::erase(pending_, it->second.buffer);
    it->second.use = Use::free;
    const auto join = [&](Blocks::iterator low, Blocks::iterator high) {
        if (low == blocks_.end() || high == blocks_.end() || low->second.use != Use::free ||
            high->second.use != Use::free)
            return low;
        low->second.size += high->second.size;
        blocks_.erase(high);
        ++stats_.num_coalesces;
        return low;
    };
    if (before(it) != blocks_.end() && before(it)->second.use == Use::free) it = join(before(it), it);
    join(it, after(it));
    it->second.free_since = lookups_[it->second.small];
    count();
}

void ReferenceAllocator::collect_garbage() {  // section 8
    const auto threshold = static_cast<Bytes>(set_.gc_threshold * static_cast<double>(*limit_));
    const Bytes target = reserved() - threshold;
    Bytes reclaimed = 0;
    for (bool freed = true; freed && reclaimed < target;) {
        std::vector<Address> candidates;
        double ages = 0;
        const auto age = [&](Address address) {
            return static_cast<double>(lookups_[0] - blocks_.at(address).free_since);
        };
        for (const Address address : free_blocks(false))
            if (!is_split(blocks_.find(address))) candidates.push_back(address), ages += age(address);
        freed = false;
        for (const Address address : candidates)
            if (age(address) >= ages / static_cast<double>(candidates.size())) {
                reclaimed += blocks_.at(address).size;
                release(address);
                freed = true;
            }
    }
}

bool ReferenceAllocator::release_oversize(bool small, Bytes size, std::uint32_t stream) {  // section 9.1
    const Bytes need = std::max(size, set_.max_split);
    std::vector<Address> mine;
    for (const Address address : free_blocks(small))
        if (blocks_.at(address).stream == stream) mine.push_back(address);
    for (const Address address : mine)
        if (blocks_.at(address).size >= need) {
            release(address);
            return true;
        }
    Bytes got = 0;
    for (auto it = mine.rbegin(); it != mine.rend() && got < need && oversize(blocks_.at(*it).size); ++it) {
        got += blocks_.at(*it).size;
        release(*it);
    }
    return got >= need;
}

void ReferenceAllocator::release_cached() {  // section 9.2
    ++stats_.num_sync_all_streams;
    while (!pending_.empty()) retire(find(pending_.front()));
    for (const bool small : {false, true})
        for (const Address address : free_blocks(small))
            if (!is_split(blocks_.find(address))) release(address);
}

void ReferenceAllocator::release(Address address) {
    const Block block = blocks_.at(address);
    blocks_.erase(address);
    ++stats_.num_device_free;
    device_.free(address, block.size, {block.stream});
    count();
}

// Statistics are what the memory says now, peaks and sums follow from how they changed.
void ReferenceAllocator::count() {
    struct Sum {
        Bytes allocation = 0, active = 0, segment = 0, inactive_split = 0;
        Bytes allocated_bytes = 0, active_bytes = 0, reserved_bytes = 0, inactive_split_bytes = 0, requested_bytes = 0;
        Bytes oversize_allocations = 0, oversize_segments = 0;
    };
    Sum sums[2];  // large, small
    for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
        const Block& block = it->second;
        Sum& sum = sums[block.small];
        sum.reserved_bytes += block.size;
        if (before(it) == blocks_.end()) {
            sum.segment += 1;
            Bytes segment = 0;
            for (auto part = it; part != blocks_.end(); part = after(part)) segment += part->second.size;
            sum.oversize_segments += oversize(segment);
        }
        if (block.use == Use::free) {
            sum.inactive_split += is_split(it);
            sum.inactive_split_bytes += is_split(it) ? block.size : 0;
            continue;
        }
        sum.active += 1;
        sum.active_bytes += block.size;
        sum.requested_bytes += block.requested;
        if (block.use == Use::pending) continue;
        sum.allocation += 1;
        sum.allocated_bytes += block.size;
        sum.oversize_allocations += oversize(block.size);
    }
    const auto update = [](Stat& stat, Bytes value) {
        if (value > stat.current) stat.allocated += value - stat.current;
        stat.current = value;
        stat.peak = std::max(stat.peak, value);
    };
    const auto update_all = [&](StatArray AllocatorStats::*array, Bytes Sum::*sum) {
        update((stats_.*array).all, sums[0].*sum + sums[1].*sum);
        update((stats_.*array).by_class[static_cast<std::size_t>(SizeClass::large)], sums[0].*sum);
        update((stats_.*array).by_class[static_cast<std::size_t>(SizeClass::small)], sums[1].*sum);
    };
    update_all(&AllocatorStats::allocation, &Sum::allocation);
    update_all(&AllocatorStats::active, &Sum::active);
    update_all(&AllocatorStats::segment, &Sum::segment);
    update_all(&AllocatorStats::inactive_split, &Sum::inactive_split);
    update_all(&AllocatorStats::allocated_bytes, &Sum::allocated_bytes);
    update_all(&AllocatorStats::active_bytes, &Sum::active_bytes);
    update_all(&AllocatorStats::reserved_bytes, &Sum::reserved_bytes);
    update_all(&AllocatorStats::inactive_split_bytes, &Sum::inactive_split_bytes);
    update_all(&AllocatorStats::requested_bytes, &Sum::requested_bytes);
    update(stats_.oversize_allocations, sums[0].oversize_allocations + sums[1].oversize_allocations);
    update(stats_.oversize_segments, sums[0].oversize_segments + sums[1].oversize_segments);
}

MemoryPicture ReferenceAllocator::picture() const {
    MemoryPicture picture;
    std::size_t segment = static_cast<std::size_t>(-1);
    for (const auto& [address, block] : blocks_) {
        if (block.segment != segment)
            picture.segments.push_back({address, 0, {block.stream}, 0, block.small, false,
                static_cast<std::uint32_t>(picture.blocks.size()), 0});
        segment = block.segment;
        picture.segments.back().size += block.size;
        ++picture.segments.back().block_count;
        const BlockState state = block.use == Use::free        ? BlockState::inactive
                                 : block.use == Use::allocated ? BlockState::active_allocated
                                                               : BlockState::active_pending_free;
        picture.blocks.push_back({address, block.size, block.requested, block.buffer, state});
    }
    return picture;
}

}  // namespace

std::unique_ptr<Policy> reference_allocator(const ReferenceSettings& settings, Device& device) {
    return std::make_unique<ReferenceAllocator>(settings, device);
}

}  // namespace fragsim::test
