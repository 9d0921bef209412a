// Which addresses are taken at which time: what a greedy packer asks for every item it places.
//
// A segment tree over the sections of time. A node keeps two sets of addresses: those taken by items that cover all of
// its time (`whole`), and those taken by any item in it at any moment (`some`). What an item overlaps with is then the
// union of O(log sections) sets: `some` of the nodes that make up its lifespan, `whole` of all that contain them. The
// sets are kept as disjoint ranges that do not touch, and a packing has few gaps, so they stay short however many items
// they are made of: this is what makes greedy packing fast on traces with thousands of live buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/planner/sections.hpp"

namespace fragsim::planner {

class Occupancy {
public:
    explicit Occupancy(std::uint32_t sections);

    // The lowest offset at which `bytes` are free in all of `time`, if it ends at or below `limit`.
    std::optional<Bytes> first_gap(Sections::Range time, Bytes bytes, Bytes limit);
    // The same in the smallest gap that is large enough, the lowest of them on ties; on top of everything if none is.
    std::optional<Bytes> best_gap(Sections::Range time, Bytes bytes, Bytes limit);

    void take(Sections::Range time, Bytes begin, Bytes end);

    std::int64_t work() const { return work_; }

private:
    struct Taken {
        Bytes begin, end;
    };
    using Ranges = std::vector<Taken>;  // ascending; each ends before the next begins
    struct Node {
        Ranges some, whole;
    };
    struct Cursor {
        const Taken *at, *end;
    };
    struct Place {
        std::uint32_t node;
        Sections::Range time;
    };
    Place root() const { return {1, {0, leaves_}}; }

    static void add(Ranges& ranges, Taken taken);
    template <class Above, class Part>
    void visit(Sections::Range time, const Above& above, const Part& part, Place place);
    void collect(Sections::Range time);

    std::uint32_t leaves_ = 1;
    std::vector<Node> nodes_;      // node i has the children 2i and 2i + 1; 1 is the root
    std::vector<Cursor> cursors_;  // of one query
    std::int64_t work_ = 0;
};

}  // namespace fragsim::planner
