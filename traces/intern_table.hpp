// Every distinct string of a document once, as a small number. Equal strings have equal numbers, so everything after
// the tokenizer compares integers. Serves for other small keys too, taken as bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lib/trace/flat_array.hpp"

namespace fragsim {

class InternTable {
public:
    // Numbers count from 0 in order of first appearance. Throws std::length_error beyond 2^32 bytes of distinct text.
    // May read up to eight bytes from text.data() even if the text is shorter.
    std::uint32_t intern(std::string_view text);
    // The same for text that is not followed by readable bytes.
    std::uint32_t intern_exact(std::string_view text);

    // Valid until the next intern.
    std::string_view text(std::uint32_t number) const;
    std::size_t size() const { return ends_.size(); }

private:
    std::uint32_t find_or_add(std::string_view text);
    void rehash();

    // Up to seven bytes fit, with their length, into one word; the last such strings are found without hashing text.
    struct Recent {
        std::uint64_t packed = ~std::uint64_t{0};
        std::uint32_t number = 0;
    };
    std::array<Recent, 256> recent_;

    FlatArray<char> text_;            // all strings, one after another
    FlatArray<std::uint32_t> ends_;   // string i is text_[ends_[i - 1], ends_[i])
    FlatArray<std::uint32_t> slots_;  // open addressing: number + 1, or 0; the size is a power of two
};

}  // namespace fragsim
