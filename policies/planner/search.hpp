// The least height by branch and bound, after MiniMalloc: items are placed from the bottom up, each at the lowest
// offset that those below leave it. For small inputs; a budget of nodes bounds the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/planner/greedy.hpp"

namespace fragsim::planner {

class Search {
public:
    // Looks for plans lower than `known`, a plan for all items.
    Search(const Problem& problem, Plan known);

    // Tries at most `nodes` placements. The best plan found; `optimal` if there is no lower one for certain. `nodes`
    // is left with what was not used.
    Plan run(std::int64_t& nodes);

private:
    struct Candidate {
        Bytes offset;
        std::uint32_t rank, item;
        friend bool operator<(const Candidate& a, const Candidate& b) {
            return a.offset != b.offset ? a.offset < b.offset : a.rank < b.rank;
        }
    };
    struct Frame {  // of one depth of the search
        std::vector<Candidate> candidates;
        std::vector<Bytes> lowest, floor;  // as they were before the placement, to undo it
    };

    enum class Outcome { found, impossible, unknown };

    Outcome try_for(Bytes height, std::int64_t limit, std::int64_t& nodes);
    bool explore(std::size_t depth, Candidate last);
    void find_candidates(std::vector<Candidate>& candidates, Candidate last) const;
    bool has_room(Bytes bottom) const;
    bool set(const Candidate& choice, Frame& frame);
    void unset(const Candidate& choice, const Frame& frame);

    const Problem& problem_;
    const std::vector<Order> orders_;                   // tried in turn
    Bytes unit_ = 0;                                    // every height is a multiple of it
    std::vector<std::vector<std::uint32_t>> overlaps_;  // by item: others alive at the same time
    std::vector<std::uint32_t> twin_;                   // by item: the last one before it that is its equal, or itself
    std::vector<std::uint32_t> rank_;                   // by item: which goes first among candidates at one offset
    std::vector<Bytes> offsets_;                        // by item; Plan::kLeftOut: not placed
    std::vector<Bytes> lowest_;                         // by item: the top of what is placed and overlaps with it
    std::vector<Bytes> floor_, rest_;  // by section: the top of what is placed, the bytes of what is not
    std::vector<Frame> frames_;        // by depth
    Plan best_;
    Bytes ceiling_ = 0;       // no item reaches it
    std::int64_t nodes_ = 0;  // left
};

}  // namespace fragsim::planner
