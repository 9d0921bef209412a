#include "policies/planner/search.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace fragsim::planner {
namespace {

// The orders that MiniMalloc tries in turn: by lifespan, by area and by the total of the fullest section, in three
// sequences. Which of them finds a good plan soon differs from input to input.
std::vector<Order> static_orders(const Problem& problem) {
    struct Measure {
        std::int64_t width;
        Bytes total;
        double area;
    };
    std::vector<Measure> of;
    for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
        const Sections::Range time = problem.sections.of[i];
        const auto load = problem.sections.load.begin();
        of.push_back({time.last - time.first, *std::max_element(load + time.first, load + time.last),
            static_cast<double>(problem.items[i].bytes) * (time.last - time.first)});
    }
    const auto sorted = [&](auto key) {
        Order order(of.size());
        std::iota(order.begin(), order.end(), 0u);
        std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return key(of[a]) > key(of[b]); });
        return order;
    };
    return {sorted([](const Measure& m) { return std::tuple(m.width, m.area, m.total); }),
        sorted([](const Measure& m) { return std::tuple(m.total, m.area, m.width); }),
        sorted([](const Measure& m) { return std::tuple(m.total, m.width, m.area); })};
}

}  // namespace

Search::Search(const Problem& problem, Plan known)
    : problem_(problem), orders_(static_orders(problem)), overlaps_(problem.items.size()), rank_(problem.items.size()),
      offsets_(problem.items.size(), Plan::kLeftOut), lowest_(problem.items.size()), floor_(problem.sections.count()),
      rest_(problem.sections.load), frames_(problem.items.size()), best_(std::move(known)) {
    for (const Item& item : problem_.items) unit_ = std::gcd(unit_, item.bytes);
    const auto& time = problem_.sections.of;
    for (std::uint32_t i = 0; i < time.size(); ++i) {
        twin_.push_back(i);
        for (std::uint32_t j = 0; j < time.size(); ++j) {
            if (j == i || time[j].first >= time[i].last || time[i].first >= time[j].last) continue;
            overlaps_[i].push_back(j);
            if (j < i && time[j] == time[i] && problem_.items[j].bytes == problem_.items[i].bytes) twin_[i] = j;
        }
    }
}

Plan Search::run(std::int64_t& nodes) {
    Bytes lower = problem_.load;  // no plan is lower
    for (std::int64_t limit = 1000; lower < best_.height && nodes > 0; limit *= 2) {
        Bytes from = lower;  // nothing lower was found within the limit
        for (Bytes target = lower; from < best_.height && nodes > 0;) {
            const Outcome outcome = try_for(target, limit, nodes);
            if (outcome != Outcome::found) from = target + unit_;
            if (outcome == Outcome::impossible) lower = from;
            target = from + (best_.height - from) / unit_ / 2 * unit_;
            if (target == best_.height) target = from;
        }
    }
    best_.optimal = lower == best_.height;
    return best_;
}

// Looks for a plan of at most that height, with `limit` nodes for each order.
Search::Outcome Search::try_for(Bytes height, std::int64_t limit, std::int64_t& nodes) {
    const Bytes before = best_.height;
    for (const Order& order : orders_) {
        for (std::uint32_t k = 0; k < order.size(); ++k) rank_[order[k]] = k;
        ceiling_ = height + 1;
        const std::int64_t share = std::min(limit, nodes);
        nodes_ = share;
        const bool searched_all = explore(0, {0, 0, 0});
        nodes -= share - std::max<std::int64_t>(nodes_, 0);
        if (best_.height < before) return Outcome::found;
        if (searched_all) return Outcome::impossible;
        if (nodes <= 0) break;
    }
    return Outcome::unknown;
}

// False: found, or out of budget.
bool Search::explore(std::size_t depth, Candidate last) {
    if (depth == offsets_.size()) {
        best_.offsets = offsets_;
        best_.height = *std::max_element(floor_.begin(), floor_.end());
        return false;
    }
    if (!has_room(last.offset)) return true;
    Frame& frame = frames_[depth];
    find_candidates(frame.candidates, last);
    for (const Candidate& choice : frame.candidates) {
        if (--nodes_ < 0) return false;
        bool goes_on = true;
        const bool hinders_none = std::all_of(overlaps_[choice.item].begin(), overlaps_[choice.item].end(),
            [&](std::uint32_t j) { return offsets_[j] != Plan::kLeftOut; });
        if (set(choice, frame)) goes_on = explore(depth + 1, choice);
        unset(choice, frame);
        if (!goes_on) return false;
        // What comes later in the list lies no lower, so this one may as well be placed first.
        if (hinders_none) break;
    }
    return true;
}

// What may be placed next: offsets ascend, and at one offset the ranks do, so that no plan is found in two ways.
void Search::find_candidates(std::vector<Candidate>& candidates, Candidate last) const {
    candidates.clear();
    // An item at or above the top that another could have now leaves room for that one below it: there is a plan as
    // low where the other went first.
    Bytes top = ceiling_;
    for (std::uint32_t i = 0; i < offsets_.size(); ++i)
        if (offsets_[i] == Plan::kLeftOut) top = std::min(top, lowest_[i] + problem_.items[i].bytes);
    for (std::uint32_t i = 0; i < offsets_.size(); ++i) {
        if (offsets_[i] != Plan::kLeftOut || lowest_[i] >= top) continue;
        if (twin_[i] != i && offsets_[twin_[i]] == Plan::kLeftOut) continue;
        const Candidate candidate{lowest_[i], rank_[i], i};
        if (candidate < last) continue;
        if (candidate.offset + problem_.items[i].bytes < ceiling_) candidates.push_back(candidate);
    }
    std::sort(candidates.begin(), candidates.end());
}

// Whether every section's unplaced items still fit below the ceiling, from `bottom` up.
bool Search::has_room(Bytes bottom) const {
    for (std::size_t t = 0; t < rest_.size(); ++t)
        if (rest_[t] > 0 && std::max(floor_[t], bottom) + rest_[t] >= ceiling_) return false;
    return true;
}

// False: it leaves too little room above in some section. Undone by unset() in either case.
bool Search::set(const Candidate& choice, Frame& frame) {
    const Bytes bytes = problem_.items[choice.item].bytes, top = choice.offset + bytes;
    const Sections::Range time = problem_.sections.of[choice.item];
    offsets_[choice.item] = choice.offset;
    bool fits = true;
    frame.floor.assign(floor_.begin() + time.first, floor_.begin() + time.last);
    for (std::uint32_t t = time.first; t < time.last; ++t) {
        floor_[t] = top;
        rest_[t] -= bytes;
        fits &= top + rest_[t] < ceiling_;
    }
    frame.lowest.clear();
    for (const std::uint32_t j : overlaps_[choice.item]) {
        frame.lowest.push_back(lowest_[j]);
        lowest_[j] = std::max(lowest_[j], top);
    }
    return fits;
}

void Search::unset(const Candidate& choice, const Frame& frame) {
    const Sections::Range time = problem_.sections.of[choice.item];
    offsets_[choice.item] = Plan::kLeftOut;
    std::copy(frame.floor.begin(), frame.floor.end(), floor_.begin() + time.first);
    for (std::uint32_t t = time.first; t < time.last; ++t) rest_[t] += problem_.items[choice.item].bytes;
    for (std::size_t k = 0; k < frame.lowest.size(); ++k) lowest_[overlaps_[choice.item][k]] = frame.lowest[k];
}

}  // namespace fragsim::planner
