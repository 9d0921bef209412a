#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lib/trace/input.hpp"

namespace fragsim::fuzz {

class SpanSource final : public ByteSource {
public:
    SpanSource(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
    std::size_t read(std::byte* into, std::size_t capacity) override {
        const std::size_t count = std::min(capacity, left_);
        if (count > 0) std::memcpy(into, data_, count);
        data_ += count;
        left_ -= count;
        return count;
    }

private:
    const std::uint8_t* data_;
    std::size_t left_;
};

}  // namespace fragsim::fuzz
