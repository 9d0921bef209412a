#include "traces/intern_table.hpp"

#include <cstring>
#include <limits>
#include <stdexcept>

namespace fragsim {
namespace {

constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio

std::uint64_t hash_text(std::string_view text) {
    std::uint64_t hash = text.size() * kMix;
    while (text.size() >= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data(), 8);
        hash = (hash ^ word) * kMix;
        hash ^= hash >> 32;
        text.remove_prefix(8);
    }
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), text.size());
    hash = (hash ^ word) * kMix;
    return hash ^ (hash >> 29);
}

}  // namespace

std::uint32_t InternTable::intern(std::string_view text) {
    if (text.size() > 7) return find_or_add(text);
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    const std::uint64_t packed =
        (word & ((std::uint64_t{1} << (8 * text.size())) - 1)) | static_cast<std::uint64_t>(text.size()) << 56;
    Recent& recent = recent_[(packed * kMix) >> 56];
    if (recent.packed != packed) recent = {packed, find_or_add(text)};
    return recent.number;
}

std::uint32_t InternTable::intern_exact(std::string_view text) { return find_or_add(text); }

std::string_view InternTable::text(std::uint32_t number) const {
    const std::uint32_t begin = number == 0 ? 0 : ends_[number - 1];
    return {text_.data() + begin, ends_[number] - begin};
}

std::uint32_t InternTable::find_or_add(std::string_view text) {
    if (2 * (ends_.size() + 1) > slots_.size()) rehash();
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash_text(text) & mask;
    for (; slots_[slot] != 0; slot = (slot + 1) & mask)
        if (this->text(slots_[slot] - 1) == text) return slots_[slot] - 1;

    if (text_.size() + text.size() > std::numeric_limits<std::uint32_t>::max())
        throw std::length_error("more than 4 GiB of distinct text");
    text_.append({text.data(), text.size()});
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
    slots_[slot] = static_cast<std::uint32_t>(ends_.size());
    return static_cast<std::uint32_t>(ends_.size() - 1);
}

void InternTable::rehash() {
    const std::size_t count = slots_.empty() ? 256 : 2 * slots_.size();
    slots_.shrink(0);
    slots_.resize(count, 0);
    for (std::uint32_t number = 0; number < ends_.size(); ++number) {
        std::size_t slot = hash_text(text(number)) & (count - 1);
        while (slots_[slot] != 0) slot = (slot + 1) & (count - 1);
        slots_[slot] = number + 1;
    }
}

}  // namespace fragsim
