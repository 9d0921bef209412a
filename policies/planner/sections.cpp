#include "policies/planner/sections.hpp"

#include <algorithm>

namespace fragsim::planner {
namespace {

struct Change {
    std::uint32_t time;
    bool begins;  // ends come first: lifespans are half-open
    std::uint32_t item;

    friend bool operator<(const Change& a, const Change& b) {
        return a.time != b.time ? a.time < b.time : a.begins != b.begins ? b.begins : a.item < b.item;
    }
};

}  // namespace

Sections sections_of(std::span<const Item> items) {
    std::vector<Change> changes;
    changes.reserve(2 * items.size());
    for (std::uint32_t i = 0; i < items.size(); ++i) {
        changes.push_back({items[i].begin, true, i});
        changes.push_back({items[i].end, false, i});
    }
    std::sort(changes.begin(), changes.end());

    Sections sections;
    sections.of.resize(items.size());
    Bytes alive = 0;
    bool ended = true;
    for (const Change& change : changes) {
        Sections::Range& range = sections.of[change.item];
        if (change.begins) {
            if (ended) sections.load.push_back(alive);
            alive += items[change.item].bytes;
            range.first = sections.count() - 1;
            sections.load.back() = alive;
        } else {
            alive -= items[change.item].bytes;
            range.last = sections.count();
        }
        ended = !change.begins;
    }
    return sections;
}

}  // namespace fragsim::planner
