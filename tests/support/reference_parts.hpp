// What the references of tests/support/reference_*.cpp share: a map of free ranges, and what each family makes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tests/support/reference_policies.hpp"

namespace fragsim::test {

// Disjoint free ranges by address. Neighbours join, except across a wall.
struct FreeRanges {
    std::map<Address, Bytes> ranges;
    std::set<Address> walls;

    void put(Address address, Bytes bytes) {
        const auto behind = ranges.find(address + bytes);
        if (behind != ranges.end() && !walls.contains(address + bytes)) {
            bytes += behind->second;
            ranges.erase(behind);
        }
        for (auto it = ranges.begin(); it != ranges.end(); ++it)
            if (it->first + it->second == address && !walls.contains(address)) {
                it->second += bytes;
                return;
            }
        ranges[address] = bytes;
    }
    // The free range that holds [address, address + bytes).
    std::map<Address, Bytes>::iterator around(Address address, Bytes bytes) {
        for (auto it = ranges.begin(); it != ranges.end(); ++it)
            if (it->first <= address && address + bytes <= it->first + it->second) return it;
        return ranges.end();
    }
    void take(Address address, Bytes bytes) {
        const auto range = around(address, bytes);
        FRAGSIM_ASSERT(range != ranges.end());
        const auto [start, size] = *range;
        ranges.erase(range);
        if (start < address) ranges[start] = address - start;
        if (address + bytes < start + size) ranges[address + bytes] = start + size - address - bytes;
    }

    // The lowest address wins among equals.
    std::optional<Address> best(Bytes bytes) const {
        return pick(bytes, [](Bytes size, Bytes chosen) { return size < chosen; });
    }
    std::optional<Address> worst(Bytes bytes) const {
        return pick(bytes, [](Bytes size, Bytes chosen) { return size > chosen; });
    }
    std::optional<Address> first(Bytes bytes) const {
        return pick(bytes, [](Bytes, Bytes) { return false; });
    }
    template <class Better>
    std::optional<Address> pick(Bytes bytes, Better better) const {
        auto chosen = ranges.end();
        for (auto it = ranges.begin(); it != ranges.end(); ++it)
            if (it->second >= bytes && (chosen == ranges.end() || better(it->second, chosen->second))) chosen = it;
        return chosen == ranges.end() ? std::nullopt : std::optional(chosen->first);
    }
};

inline Bytes total_of(const ReferenceParameters& parameters, const Device& device) {
    return parameters.capacity.value_or(device.total_memory());
}

// None: no policy of that name in the family.
using ReferenceMaker = std::unique_ptr<ReferencePolicy>(
    const std::string& name, const ReferenceParameters& parameters, Device& device);
ReferenceMaker reference_arena_policy;      // best-fit, first-fit, next-fit, worst-fit, tlsf, direct
ReferenceMaker reference_buddy_policy;      // buddy
ReferenceMaker reference_rmm_policy;        // rmm-pool, rmm-arena, rmm-binning
ReferenceMaker reference_cupy_policy;       // cupy-pool
ReferenceMaker reference_framework_policy;  // bfc, vmm-pool
ReferenceMaker reference_stitching_policy;  // stitching
std::unique_ptr<ReferencePolicy> reference_stitching_as_released(const ReferenceParameters& parameters, Device& device);
ReferenceMaker reference_torch_async_policy;  // torch-async
ReferenceMaker reference_async_policy;        // async-pool

}  // namespace fragsim::test
