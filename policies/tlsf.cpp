// TLSF, two-level segregated fit: constant time for every operation.
//
// Rationale: real-time programs need a bound on the time of an allocation, not the best block. Approach: a class for
// each power of two, cut into 2^sl_log2 lists; two levels of bitmaps find the first list at or above the request's that
// holds anything, its newest block serves. A request is rounded up to the next class, so that every block of the list
// is large enough; the price is that it can fail while its own class holds one that fits (exact_class_scan looks
// there). Source: spec/policies.md, section 5.2, after mattconte/tlsf. Differences from upstream: no headers inside the
// memory (a device cannot read them cheaply), addresses of ties by list order alone.
#include <array>
#include <bit>

#include "policies/fits/fit_policy.hpp"

namespace fragsim {
namespace {

class TwoLevelSearch {
public:
    TwoLevelSearch(Bytes align, int sl_log2, bool exact_class_scan)
        : align_(align), sl_(sl_log2), small_(align << sl_log2), small_log2_(log2(small_)),
          exact_class_scan_(exact_class_scan) {
        heads_.assign(kFirstLevels << sl_, kNone);
    }

    void insert(Address, Bytes size, std::uint32_t block) {
        const std::uint32_t list = class_of(size);
        if (block >= nodes_.size()) nodes_.resize(std::max<std::size_t>(block + 1, 2 * nodes_.size()));
        nodes_[block] = {kNone, heads_[list], size};
        if (heads_[list] != kNone) nodes_[heads_[list]].prev = block;
        heads_[list] = block;
        first_level_ |= std::uint64_t{1} << (list >> sl_);
        second_level_[list >> sl_] |= std::uint64_t{1} << (list & ((1u << sl_) - 1));
    }

    void erase(Address, Bytes size, std::uint32_t block) {
        const std::uint32_t list = class_of(size);
        const Node node = nodes_[block];
        (node.prev == kNone ? heads_[list] : nodes_[node.prev].next) = node.next;
        if (node.next != kNone) nodes_[node.next].prev = node.prev;
        if (heads_[list] != kNone) return;
        std::uint64_t& lists = second_level_[list >> sl_];
        lists &= ~(std::uint64_t{1} << (list & ((1u << sl_) - 1)));
        if (lists == 0) first_level_ &= ~(std::uint64_t{1} << (list >> sl_));
    }

    fits::Found find(Bytes size) const {
        const Bytes rounded = size < small_ ? size : size + (Bytes{1} << (log2(size) - sl_)) - 1;
        if (const std::uint32_t list = next_list(class_of(rounded)); list != kNone) return {heads_[list]};
        if (exact_class_scan_)
            for (std::uint32_t b = heads_[class_of(size)]; b != kNone; b = nodes_[b].next)
                if (nodes_[b].size >= size) return {b};
        return {kNone};
    }
    void placed(Address) {}

    Bytes largest() const {
        if (first_level_ == 0) return 0;
        const auto first = static_cast<std::uint32_t>(63 - std::countl_zero(first_level_));
        const auto second = static_cast<std::uint32_t>(63 - std::countl_zero(second_level_[first]));
        Bytes largest = 0;
        for (std::uint32_t b = heads_[(first << sl_) + second]; b != kNone; b = nodes_[b].next)
            largest = std::max(largest, nodes_[b].size);
        return largest;
    }
    template <class Visit>
    void for_each_size(Visit visit) const {
        for (std::uint32_t block : heads_)
            for (; block != kNone; block = nodes_[block].next) visit(nodes_[block].size);
    }

private:
    static constexpr std::uint32_t kNone = 0xffffffffu;
    static constexpr std::uint32_t kFirstLevels = 64;
    struct Node {
        std::uint32_t prev, next;  // in its list
        Bytes size;
    };

    static int log2(Bytes size) { return 63 - std::countl_zero(static_cast<std::uint64_t>(size)); }

    // The list of a size: (first level << sl_) + second level.
    std::uint32_t class_of(Bytes size) const {
        if (size < small_) return static_cast<std::uint32_t>(size / align_);
        const int first = log2(size);
        const auto second = static_cast<std::uint32_t>((size >> (first - sl_)) - (Bytes{1} << sl_));
        return (static_cast<std::uint32_t>(first - small_log2_ + 1) << sl_) + second;
    }

    std::uint32_t next_list(std::uint32_t list) const {
        const std::uint32_t first = list >> sl_;
        if (first >= kFirstLevels) return kNone;
        const std::uint64_t here = second_level_[first] >> (list & ((1u << sl_) - 1));
        if (here != 0) return list + static_cast<std::uint32_t>(std::countr_zero(here));
        const std::uint64_t above = first + 1 >= kFirstLevels ? 0 : first_level_ >> (first + 1) << (first + 1);
        if (above == 0) return kNone;
        const auto next = static_cast<std::uint32_t>(std::countr_zero(above));
        return (next << sl_) + static_cast<std::uint32_t>(std::countr_zero(second_level_[next]));
    }

    Bytes align_;
    int sl_;
    Bytes small_;  // smaller sizes have a list for each multiple of the alignment
    int small_log2_;
    bool exact_class_scan_;
    std::uint64_t first_level_ = 0;
    std::array<std::uint64_t, kFirstLevels> second_level_{};
    std::vector<std::uint32_t> heads_;  // newest block of each list
    std::vector<Node> nodes_;           // by block
};

}  // namespace

PolicyInfo tlsf_policy() {
    PolicyInfo info;
    info.name = "tlsf";
    info.summary =
        "two-level segregated fit: constant time; the newest block of the first size class that surely fits.\n"
        "Wastes up to one class (3 %) and can miss a block that would just do.";
    info.reference = "Masmano, Ripoll et al. 2004; github.com/mattconte/tlsf";
    info.parameters = fits::fit_parameters();
    info.parameters.push_back({"sl_log2", "count", "5", "lists for each power of two, as a power of two"});
    info.parameters.push_back(
        {"exact_class_scan", "bool", "false", "when nothing larger is free, look through the request's own class"});
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("tlsf", known, given);
        const fits::FitConfig config = fits::read_fit_config(read, context);
        return std::make_unique<fits::FitPolicy<TwoLevelSearch>>(config,
            TwoLevelSearch(config.align, static_cast<int>(read.count("sl_log2", 1, 6)), read.flag("exact_class_scan")),
            context.device);
    };
    return info;
}

}  // namespace fragsim
