// A set of free blocks ordered by address, made for first fit: find the lowest that is large enough, from an address
// on.
//
// Flat: sorted runs of at most kRun blocks, each with the size of its largest. A search looks at the runs' largest
// sizes one after the other and into the first run that has one; a change moves what stands behind it in its run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/core/types.hpp"

namespace fragsim {

class AddressOrderedBlocks {
public:
    using Block = std::uint32_t;
    static constexpr Block kNone = 0xffffffffu;

    struct Entry {
        Address address;
        Bytes size;
        Block block;
    };

    void insert(Address address, Bytes size, Block block) {
        if (runs_.empty()) runs_.emplace_back(), largest_.push_back(0), starts_.push_back(0);
        const std::size_t r = run_of(address);
        std::vector<Entry>& run = runs_[r];
        run.insert(position(run, address), {address, size, block});
        largest_[r] = std::max(largest_[r], size);
        if (run.size() > kRun) halve(r);
    }

    void erase(Address address) {  // which must be there
        const std::size_t r = run_of(address);
        std::vector<Entry>& run = runs_[r];
        const auto entry = position(run, address);
        FRAGSIM_ASSERT(entry != run.end() && entry->address == address);
        const Bytes size = entry->size;
        run.erase(entry);
        if (size == largest_[r]) largest_[r] = largest_of(run);
        if (run.empty() && r > 0) {
            runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(r));
            largest_.erase(largest_.begin() + static_cast<std::ptrdiff_t>(r));
            starts_.erase(starts_.begin() + static_cast<std::ptrdiff_t>(r));
        }
    }

    // The lowest block of at least `size` bytes that begins at `from` or above.
    Block first_fit(Bytes size, Address from = 0) const {
        if (runs_.empty()) return kNone;
        std::size_t r = run_of(from);
        if (largest_[r] >= size)
            for (const Entry& entry : runs_[r])
                if (entry.size >= size && entry.address >= from) return entry.block;
        for (++r; r < runs_.size(); ++r) {
            if (largest_[r] < size) continue;
            for (const Entry& entry : runs_[r])
                if (entry.size >= size) return entry.block;
        }
        return kNone;
    }
    // The one that begins nearest below or at `address`; null: none. Valid until the set changes.
    const Entry* at_or_below(Address address) const {
        if (runs_.empty()) return nullptr;
        for (std::size_t r = run_of(address) + 1; r-- > 0;) {
            const auto above = std::upper_bound(runs_[r].begin(), runs_[r].end(), address,
                [](Address a, const Entry& entry) { return a < entry.address; });
            if (above != runs_[r].begin()) return &*std::prev(above);
        }
        return nullptr;
    }

    bool empty() const { return runs_.empty() || (runs_.size() == 1 && runs_.front().empty()); }
    Bytes largest() const { return largest_.empty() ? 0 : *std::max_element(largest_.begin(), largest_.end()); }
    template <class Visit>
    void for_each(Visit visit) const {  // by address
        for (const std::vector<Entry>& run : runs_)
            for (const Entry& entry : run) visit(entry);
    }

private:
    static constexpr std::size_t kRun = 128;

    // The run that holds `address` or would: the last that starts at or below it. The first run starts at 0.
    std::size_t run_of(Address address) const {
        return static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), address) - starts_.begin()) -
               1;
    }
    static std::vector<Entry>::iterator position(std::vector<Entry>& run, Address address) {
        return std::lower_bound(
            run.begin(), run.end(), address, [](const Entry& entry, Address a) { return entry.address < a; });
    }
    static Bytes largest_of(const std::vector<Entry>& run) {
        Bytes largest = 0;
        for (const Entry& entry : run) largest = std::max(largest, entry.size);
        return largest;
    }
    void halve(std::size_t r) {
        std::vector<Entry> high(runs_[r].begin() + kRun / 2, runs_[r].end());
        runs_[r].resize(kRun / 2);
        largest_[r] = largest_of(runs_[r]);
        const auto at = static_cast<std::ptrdiff_t>(r) + 1;
        starts_.insert(starts_.begin() + at, high.front().address);
        largest_.insert(largest_.begin() + at, largest_of(high));
        runs_.insert(runs_.begin() + at, std::move(high));
    }

    std::vector<std::vector<Entry>> runs_;
    std::vector<Bytes> largest_;   // by run
    std::vector<Address> starts_;  // by run: no block of an earlier one is at or above it
};

}  // namespace fragsim
