#include "lib/metrics/fragmentation.hpp"

#include <algorithm>
#include <numeric>

namespace fragsim {
namespace {

double ratio(Bytes part, Bytes whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

FreeSpace::FreeSpace(std::vector<Bytes> sizes)
    : sizes_(std::move(sizes)), total_(std::accumulate(sizes_.begin(), sizes_.end(), Bytes{0})) {
    std::sort(sizes_.begin(), sizes_.end());
}

Bytes FreeSpace::median() const { return sizes_.empty() ? 0 : sizes_[(sizes_.size() + 1) / 2 - 1]; }

double FreeSpace::external() const { return total_ == 0 ? 0 : 1 - ratio(largest(), total_); }

double FreeSpace::unusable_index(Bytes request) const {
    const auto enough = std::lower_bound(sizes_.begin(), sizes_.end(), request);
    return ratio(std::accumulate(sizes_.begin(), enough, Bytes{0}), total_);
}

double FreeSpace::unusable_index_blocks(Bytes request) const {
    if (request <= 0) return 0;  // nothing is asked for, which fits anywhere
    Bytes usable = 0;
    for (const Bytes size : sizes_) usable += size / request * request;
    return total_ == 0 ? 0 : 1 - ratio(usable, total_);
}

double FreeSpace::fragmentation_index(Bytes request) const {
    if (sizes_.empty()) return 0;  // nothing but lack of memory
    if (largest() >= request) return -1;
    return 1 - (1 + ratio(total_, request)) / static_cast<double>(sizes_.size());
}

double FreeSpace::l2() const {
    if (total_ == 0) return 0;
    double squares = 0;
    for (const Bytes size : sizes_) squares += ratio(size, total_) * ratio(size, total_);
    return 1 - squares;
}

}  // namespace fragsim
