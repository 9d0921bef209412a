// Many lists of values that grow at their ends, in one array: a list is a chain of stretches of it. A batch of a
// thousand items costs their eight bytes each and one stretch.
#pragma once

#include <cstdint>
#include <span>

#include "lib/trace/flat_array.hpp"
#include "traces/pickle_value.hpp"

namespace fragsim {

class SequenceTable {
public:
    void append(std::uint32_t list, std::span<const Value> items) {
        if (list >= lists_.size()) lists_.resize(list + std::size_t{1}, List{});
        if (items.empty()) return;
        List& target = lists_[list];
        Stretch* last = target.last != kNone ? &stretches_[target.last] : nullptr;
        if (last != nullptr && last->begin + last->count == items_.size()) {
            last->count += items.size();
        } else {
            const auto added = static_cast<std::uint32_t>(stretches_.size());
            stretches_.push_back({items_.size(), items.size(), kNone});
            if (target.last != kNone)
                stretches_[target.last].next = added;
            else
                target.first = added;
            target.last = added;
        }
        items_.append(items);
        target.size += items.size();
    }

    std::uint64_t size(std::uint32_t list) const { return list < lists_.size() ? lists_[list].size : 0; }

    // `visit(Value)` for every item in order.
    template <class Visit>
    void for_each(std::uint32_t list, Visit&& visit) const {
        if (list >= lists_.size()) return;
        for (std::uint32_t at = lists_[list].first; at != kNone; at = stretches_[at].next) {
            const Stretch stretch = stretches_[at];
            for (std::uint64_t i = 0; i < stretch.count; ++i) visit(items_[stretch.begin + i]);
        }
    }

    // Empties the list; its memory is used again if it lies at the end.
    void drop(std::uint32_t list) {
        if (list >= lists_.size()) return;
        List& target = lists_[list];
        if (target.last != kNone && target.first == target.last) {
            const Stretch& only = stretches_[target.last];
            if (only.begin + only.count == items_.size()) items_.shrink(only.begin);
            if (target.last + std::size_t{1} == stretches_.size()) stretches_.shrink(target.last);
        }
        target = List{};
    }

private:
    static constexpr std::uint32_t kNone = 0xffffffffu;
    struct Stretch {
        std::uint64_t begin, count;
        std::uint32_t next;
    };
    struct List {
        std::uint32_t first = kNone, last = kNone;
        std::uint64_t size = 0;
    };

    FlatArray<Value> items_;
    FlatArray<Stretch> stretches_;
    FlatArray<List> lists_;
};

}  // namespace fragsim
