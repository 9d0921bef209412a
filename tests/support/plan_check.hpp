// A second opinion on plans: by definition and in quadratic time, sharing nothing with the packers but their types.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policies/planner/packing.hpp"

namespace fragsim::test {

enum class PlanFault {
    wrong_count,     // not one offset an item
    below_zero,      // an offset is negative and does not mean left out
    overlap,         // two items share bytes at some time
    over_capacity,   // an item ends above the capacity
    wrong_height,    // the height is not that of the highest item
    wrong_left_out,  // the number of items left out is not that of items without an offset
    below_load,      // everything has a place in less than is alive at one time
    false_proof      // said to be optimal with items left out
};

struct PlanFinding {
    PlanFault fault;
    std::string what;
};

inline bool alive_together(const planner::Item& a, const planner::Item& b) {
    const auto end = [](const planner::Item& item) { return std::max(item.end, item.begin + 1); };
    return a.begin < end(b) && b.begin < end(a);
}

inline Bytes plain_load(const std::vector<planner::Item>& items) {
    Bytes load = 0;
    for (const planner::Item& at : items) {  // the load rises only where an item begins
        Bytes alive = 0;
        for (const planner::Item& item : items)
            if (alive_together(item, {at.begin, at.begin + 1, 1})) alive += item.bytes;
        load = std::max(load, alive);
    }
    return load;
}

inline std::vector<PlanFinding> check_plan(
    const std::vector<planner::Item>& items, const planner::Plan& plan, std::optional<Bytes> capacity = {}) {
    std::vector<PlanFinding> findings;
    const auto find = [&](PlanFault fault, std::string what) { findings.push_back({fault, std::move(what)}); };
    if (plan.offsets.size() != items.size()) {
        find(PlanFault::wrong_count, fmt::format("{} offsets, {} items", plan.offsets.size(), items.size()));
        return findings;
    }
    Bytes height = 0;
    std::uint32_t left_out = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        const Bytes begin = plan.offsets[i], end = begin + items[i].bytes;
        if (begin == planner::Plan::kLeftOut) {
            ++left_out;
            continue;
        }
        if (begin < 0) find(PlanFault::below_zero, fmt::format("item {} at {}", i, begin));
        if (capacity && end > *capacity) find(PlanFault::over_capacity, fmt::format("item {} ends at {}", i, end));
        height = std::max(height, end);
        for (std::size_t j = 0; j < i; ++j) {
            const Bytes other = plan.offsets[j];
            if (other == planner::Plan::kLeftOut || !alive_together(items[i], items[j])) continue;
            if (begin < other + items[j].bytes && other < end)
                find(PlanFault::overlap, fmt::format("items {} and {} at {} and {}", j, i, other, begin));
        }
    }
    if (height != plan.height) find(PlanFault::wrong_height, fmt::format("said {}, is {}", plan.height, height));
    if (left_out != plan.left_out)
        find(PlanFault::wrong_left_out, fmt::format("said {}, is {}", plan.left_out, left_out));
    if (left_out == 0 && height < plain_load(items))
        find(PlanFault::below_load, fmt::format("{} of {}", height, plain_load(items)));
    if (plan.optimal && left_out > 0) find(PlanFault::false_proof, fmt::format("{} left out", left_out));
    return findings;
}

inline std::string describe(const std::vector<PlanFinding>& findings) {
    return findings.empty() ? "" : fmt::format("{} faults, first: {}", findings.size(), findings.front().what);
}

}  // namespace fragsim::test
