#include "policies/planner/occupancy.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace fragsim::planner {
namespace {

constexpr Bytes kNever = std::numeric_limits<Bytes>::max();
constexpr std::int64_t kQueryWork = 200;  // what a query and taking its answer cost beside the search, roughly

}  // namespace

Occupancy::Occupancy(std::uint32_t sections)
    : leaves_(std::bit_ceil(std::max(sections, 1u))), nodes_(std::size_t{2} * leaves_) {}

void Occupancy::add(Ranges& ranges, Taken taken) {
    const auto first = std::lower_bound(
        ranges.begin(), ranges.end(), taken.begin, [](const Taken& range, Bytes begin) { return range.end < begin; });
    auto last = first;
    for (; last != ranges.end() && last->begin <= taken.end; ++last) {
        taken.begin = std::min(taken.begin, last->begin);
        taken.end = std::max(taken.end, last->end);
    }
    if (first == last) {
        ranges.insert(first, taken);
    } else {
        *first = taken;
        ranges.erase(first + 1, last);
    }
}

// Calls part(node) for the fewest nodes that make up `time` and above(node) for every node that contains one of them.
template <class Above, class Part>
void Occupancy::visit(Sections::Range time, const Above& above, const Part& part, Place place) {
    if (time.first <= place.time.first && place.time.last <= time.last) return part(nodes_[place.node]);
    above(nodes_[place.node]);
    const std::uint32_t middle = place.time.first + (place.time.last - place.time.first) / 2;
    if (time.first < middle) visit(time, above, part, {2 * place.node, {place.time.first, middle}});
    if (time.last > middle) visit(time, above, part, {2 * place.node + 1, {middle, place.time.last}});
}

void Occupancy::take(Sections::Range time, Bytes begin, Bytes end) {
    visit(
        time,
        [&](Node& node) {
            add(node.some, {begin, end});
        },
        [&](Node& node) {
            add(node.some, {begin, end});
            add(node.whole, {begin, end});
        },
        root());
}

void Occupancy::collect(Sections::Range time) {
    cursors_.clear();
    work_ += kQueryWork;
    const auto push = [&](const Ranges& ranges) {
        if (!ranges.empty()) cursors_.push_back({ranges.data(), ranges.data() + ranges.size()});
    };
    visit(
        time, [&](Node& node) { push(node.whole); }, [&](Node& node) { push(node.some); }, root());
}

std::optional<Bytes> Occupancy::first_gap(Sections::Range time, Bytes bytes, Bytes limit) {
    if (bytes > limit) return std::nullopt;
    collect(time);
    // Whatever stands in the way at `offset` lifts it, and is asked earlier from then on; done when nothing does. The
    // last sets are those of the parts, which hold most.
    std::reverse(cursors_.begin(), cursors_.end());
    Bytes offset = 0;
    for (std::size_t k = 0; k < cursors_.size();) {
        Cursor& cursor = cursors_[k];
        ++work_;
        for (; cursor.at != cursor.end && cursor.at->end <= offset; ++cursor.at) ++work_;
        if (cursor.at == cursor.end || cursor.at->begin >= offset + bytes) {
            ++k;
            continue;
        }
        for (; cursor.at != cursor.end && cursor.at->begin < offset + bytes; ++cursor.at) {
            offset = cursor.at->end;
            ++work_;
        }
        if (offset > limit - bytes) return std::nullopt;
        std::swap(cursor, cursors_[k / 2]);
        k = 0;
    }
    return offset;
}

std::optional<Bytes> Occupancy::best_gap(Sections::Range time, Bytes bytes, Bytes limit) {
    if (bytes > limit) return std::nullopt;
    collect(time);
    Bytes offset = 0, best = kNever, best_offset = 0;
    for (;;) {
        Bytes next = kNever;  // where the gap at `offset` ends
        for (bool lifted = true; lifted;) {
            lifted = false;
            next = kNever;
            for (Cursor& cursor : cursors_) {
                ++work_;
                for (; cursor.at != cursor.end && cursor.at->begin <= offset; ++cursor.at) {
                    if (cursor.at->end <= offset) continue;
                    offset = cursor.at->end;
                    lifted = true;
                }
                if (cursor.at != cursor.end) next = std::min(next, cursor.at->begin);
            }
        }
        if (next == kNever) break;
        if (next - offset >= bytes && next - offset < best && offset <= limit - bytes) {
            best = next - offset;
            best_offset = offset;
        }
        offset = next;
    }
    if (best != kNever) return best_offset;
    return offset <= limit - bytes ? std::optional(offset) : std::nullopt;
}

}  // namespace fragsim::planner
