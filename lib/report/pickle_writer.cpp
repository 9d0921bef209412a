#include "lib/report/pickle_writer.hpp"

#include <bit>

namespace fragsim {

void PickleWriter::bytes(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) out_ += static_cast<char>(value >> 8 * i);
}

void PickleWriter::text(std::string_view value) {
    if (const auto known = texts_.find(value); known != texts_.end()) return again(known->second);
    out_ += 'X';
    bytes(value.size(), 4);
    out_ += value;
    texts_.emplace(value, remember());
}

void PickleWriter::integer(std::int64_t value) {
    if (value >= 0 && value < 256) {
        out_ += 'K';
        bytes(static_cast<std::uint64_t>(value), 1);
    } else if (value >= 0 && value < 65536) {
        out_ += 'M';
        bytes(static_cast<std::uint64_t>(value), 2);
    } else if (value == static_cast<std::int32_t>(value)) {
        out_ += 'J';
        bytes(static_cast<std::uint64_t>(value), 4);
    } else {
        out_ += "\x8a\x08";
        bytes(static_cast<std::uint64_t>(value), 8);
    }
}

void PickleWriter::real(double value) {
    out_ += 'G';
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 7; i >= 0; --i) out_ += static_cast<char>(bits >> 8 * i);  // big-endian
}

void PickleWriter::pair(std::int64_t first, std::int64_t second) {
    integer(first);
    integer(second);
    out_ += '\x86';
}

std::uint32_t PickleWriter::remember() {
    if (next_ < 256) {
        out_ += 'q';
        bytes(next_, 1);
    } else {
        out_ += 'r';
        bytes(next_, 4);
    }
    return next_++;
}

void PickleWriter::again(std::uint32_t number) {
    if (number < 256) {
        out_ += 'h';
        bytes(number, 1);
    } else {
        out_ += 'j';
        bytes(number, 4);
    }
}

}  // namespace fragsim
