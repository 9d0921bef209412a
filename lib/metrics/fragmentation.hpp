// How badly free space is cut up: pure functions of the sizes of the free ranges.
// Source: spec/policies.md, section 11.3 (Gorman & Linux' indices, Sawicki 2022).
#pragma once

#include <cstdint>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim {

class FreeSpace {
public:
    explicit FreeSpace(std::vector<Bytes> sizes = {});  // any order

    Bytes total() const { return total_; }
    Bytes largest() const { return sizes_.empty() ? 0 : sizes_.back(); }
    std::int64_t holes() const { return static_cast<std::int64_t>(sizes_.size()); }
    Bytes median() const;  // nearest rank; 0 without holes

    // 1 - largest / total; 0 without free space.
    double external() const;
    // Part of the free bytes in ranges smaller than `request`.
    double unusable_index(Bytes request) const;
    // Part of the free bytes that whole multiples of `request` cannot use.
    double unusable_index_blocks(Bytes request) const;
    // -1 if the request fits; else near 0: too little memory, near 1: enough, but in pieces.
    double fragmentation_index(Bytes request) const;
    // 1 - sum of squares / square of the sum.
    double l2() const;

private:
    std::vector<Bytes> sizes_;  // ascending
    Bytes total_ = 0;
};

}  // namespace fragsim
