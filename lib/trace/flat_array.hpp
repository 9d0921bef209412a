// A growing array of plain data. Unlike std::vector it grows in place where the system can remap pages, so a large one
// is never held twice and memory that was reserved but not used is not resident.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace fragsim {

template <class T>
class FlatArray {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

public:
    FlatArray() = default;
    FlatArray(const FlatArray&) = delete;
    FlatArray& operator=(const FlatArray&) = delete;
    FlatArray(FlatArray&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)) {}
    FlatArray& operator=(FlatArray&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        return *this;
    }
    ~FlatArray() { std::free(data_); }

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](std::size_t index) { return data_[index]; }
    const T& operator[](std::size_t index) const { return data_[index]; }
    T& back() { return data_[size_ - 1]; }
    const T& back() const { return data_[size_ - 1]; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }

    void push_back(const T& value) {
        const T copy = value;  // `value` may lie in this array
        if (size_ == capacity_) [[unlikely]]
            grow(size_ + 1);
        data_[size_++] = copy;
    }

    // `values` must not lie in this array.
    void append(std::span<const T> values) {
        if (values.empty()) return;
        reserve(size_ + values.size());
        std::memcpy(data_ + size_, values.data(), values.size_bytes());
        size_ += values.size();
    }

    void resize(std::size_t count, const T& fill) {
        reserve(count);
        for (std::size_t i = size_; i < count; ++i) data_[i] = fill;
        size_ = count;
    }

    void shrink(std::size_t count) { size_ = count; }

    // Room for `count` elements at least, growing geometrically.
    void reserve(std::size_t count) {
        if (count > capacity_) grow(count);
    }

private:
    [[gnu::noinline, gnu::cold]] void grow(std::size_t count) {
        std::size_t capacity = capacity_ < 16 ? 32 : 2 * capacity_;
        if (capacity < count) capacity = count;
        if (capacity > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_alloc();
        void* grown = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
        if (grown == nullptr) throw std::bad_alloc();
        data_ = static_cast<T*>(grown);
        capacity_ = capacity;
    }

    T* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace fragsim
