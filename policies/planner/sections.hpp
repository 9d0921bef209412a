// Time cut down to what matters for packing: the moments at which as many items are alive as ever before some of them
// end. Two items overlap in time exactly if they share such a section, and there are at most as many as items.
//
//   a |-------|            events:   a b | c |        sections:  0: a b   1: b c
//   b   |-----------|                 +   -
//   c           |---|
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/planner/packing.hpp"

namespace fragsim::planner {

struct Sections {
    struct Range {
        std::uint32_t first, last;  // alive in the sections [first, last)
        friend bool operator==(Range, Range) = default;
    };
    std::vector<Range> of;    // by item
    std::vector<Bytes> load;  // bytes alive, by section

    std::uint32_t count() const { return static_cast<std::uint32_t>(load.size()); }
};

// No lifespan is empty.
Sections sections_of(std::span<const Item> items);

}  // namespace fragsim::planner
