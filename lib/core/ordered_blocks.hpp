// A set of free blocks ordered by (size, tie), made for best fit: find the smallest that is large enough, take it, put
// back what is left.
//
// Flat: sizes fall into bins, 64 to a power of two, so that a bin's blocks are nearly of one size and few; a bitmap
// finds the next bin that holds any. Each bin is a sorted array. A change costs moving what stands behind it in its
// bin: a few entries in the traces known, a linear pass in the worst case, where every free block has the same size.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/core/types.hpp"

namespace fragsim {

class OrderedBlocks {
public:
    using Block = std::uint32_t;

    // `tie` orders blocks of equal size; (size, tie) is unique in a set. `size` >= 0.
    struct Key {
        Bytes size;
        std::uint64_t tie;
        friend bool operator<(const Key& a, const Key& b) { return a.size != b.size ? a.size < b.size : a.tie < b.tie; }
    };

    // A place between begin and end. Any change to the set ends its validity.
    struct Position {
        std::uint32_t bin, index;
        friend bool operator==(Position, Position) = default;
    };

    bool empty() const { return used_words_ == 0; }
    Position begin() const { return {next_bin(0), 0}; }
    static Position end() { return {kBins, 0}; }
    Block block(Position p) const { return bins_[p.bin][p.index].block; }
    Key key(Position p) const { return bins_[p.bin][p.index].key; }
    Bytes size(Position p) const { return bins_[p.bin][p.index].key.size; }
    Bytes largest() const { return empty() ? 0 : bins_[last_bin()].back().key.size; }

    Position next(Position p) const {
        return p.index + 1 < bins_[p.bin].size() ? Position{p.bin, p.index + 1} : Position{next_bin(p.bin + 1), 0};
    }
    Position last() const {  // of a set that is not empty
        const std::uint32_t bin = last_bin();
        return {bin, static_cast<std::uint32_t>(bins_[bin].size()) - 1};
    }

    // The first block that is not before `wanted`.
    Position lower_bound(Key wanted) const {
        if (empty()) return end();
        const std::uint32_t bin = bin_of(wanted.size);
        const std::uint32_t index = find(bins_[bin], wanted);
        return index < bins_[bin].size() ? Position{bin, index} : Position{next_bin(bin + 1), 0};
    }
    Position lower_bound(Bytes size) const { return lower_bound(Key{size, 0}); }

    void insert(Key key, Block block) {
        if (bins_.empty()) bins_.resize(kBins);
        const std::uint32_t bin = bin_of(key.size);
        std::vector<Entry>& entries = bins_[bin];
        entries.insert(entries.begin() + find(entries, key), {key, block});
        words_[bin / 64] |= std::uint64_t{1} << bin % 64;
        used_words_ |= std::uint64_t{1} << bin / 64;
    }

    void erase(Position p) {
        std::vector<Entry>& entries = bins_[p.bin];
        entries.erase(entries.begin() + p.index);
        if (!entries.empty()) return;
        words_[p.bin / 64] &= ~(std::uint64_t{1} << p.bin % 64);
        if (words_[p.bin / 64] == 0) used_words_ &= ~(std::uint64_t{1} << p.bin / 64);
    }
    void erase(Key key) {  // which must be there
        const std::uint32_t bin = bin_of(key.size);
        FRAGSIM_ASSERT(!bins_.empty());
        const std::uint32_t index = find(bins_[bin], key);
        FRAGSIM_ASSERT(index < bins_[bin].size() && bins_[bin][index].key.tie == key.tie);
        erase(Position{bin, index});
    }

private:
    struct Entry {
        Key key;
        Block block;
    };

    // Sizes below 64 KiB have a bin for every 512 bytes; from there on each power of two has 64.
    static constexpr std::uint32_t kWords = 48;  // enough for any Bytes
    static constexpr std::uint32_t kBins = 64 * kWords;
    static constexpr std::uint32_t bin_of(Bytes size) {
        const std::uint64_t units = static_cast<std::uint64_t>(size) / 512;
        if (units < 64) return static_cast<std::uint32_t>(units);
        const auto octave = static_cast<std::uint32_t>(63 - std::countl_zero(units)) - 6;
        return 64 * (octave + 1) + static_cast<std::uint32_t>(units >> octave & 63);
    }

    static std::uint32_t find(const std::vector<Entry>& entries, Key wanted) {
        std::uint32_t first = 0;
        auto count = static_cast<std::uint32_t>(entries.size());
        while (count > 8) {
            const std::uint32_t half = count / 2;
            if (entries[first + half - 1].key < wanted) first += half;
            count -= half;
        }
        while (count > 0 && entries[first].key < wanted) ++first, --count;
        return first;
    }

    // The first bin from `bin` on that holds a block; kBins: none.
    std::uint32_t next_bin(std::uint32_t bin) const {
        if (bin >= kBins) return kBins;
        if (const std::uint64_t rest = words_[bin / 64] >> bin % 64)
            return bin + static_cast<std::uint32_t>(std::countr_zero(rest));
        const std::uint64_t later = used_words_ & ~std::uint64_t{0} << bin / 64 & ~(std::uint64_t{1} << bin / 64);
        if (later == 0) return kBins;
        const auto word = static_cast<std::uint32_t>(std::countr_zero(later));
        return 64 * word + static_cast<std::uint32_t>(std::countr_zero(words_[word]));
    }
    std::uint32_t last_bin() const {
        const auto word = static_cast<std::uint32_t>(63 - std::countl_zero(used_words_));
        return 64 * word + static_cast<std::uint32_t>(63 - std::countl_zero(words_[word]));
    }

    // Bit b of words_[w] says that bin 64 w + b holds a block, bit w of used_words_ that words_[w] is not 0.
    std::vector<std::vector<Entry>> bins_;  // made with the first block
    std::array<std::uint64_t, kWords> words_{};
    std::uint64_t used_words_ = 0;
};

}  // namespace fragsim
