// What the tests of readers share: inputs from memory, and snapshots written as JSON.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "lib/core/error.hpp"
#include "lib/trace/input.hpp"
#include "tests/support/refusal.hpp"
#include "traces/registry.hpp"

namespace fragsim::test {

// Gives `bytes`, at most `step` at a time.
class MemorySource final : public ByteSource {
public:
    explicit MemorySource(std::string bytes, std::size_t step = ~std::size_t{0})
        : bytes_(std::move(bytes)), step_(step) {}
    std::size_t read(std::byte* into, std::size_t capacity) override {
        const std::size_t count = std::min({capacity, step_, bytes_.size() - at_});
        std::memcpy(into, bytes_.data() + at_, count);
        at_ += count;
        return count;
    }

private:
    std::string bytes_;
    std::size_t step_, at_ = 0;
};

inline Input input_of(std::string bytes, std::size_t step = ~std::size_t{0}) {
    return Input(std::make_unique<MemorySource>(std::move(bytes), step), "run");
}

inline Recording read_as(std::string_view format, std::string bytes, std::size_t step = ~std::size_t{0}) {
    Input input = input_of(std::move(bytes), step);
    for (const FormatInfo& info : trace_formats())
        if (info.name == format) return info.read(input);
    throw Error(ErrorCode::internal, "no such format");
}

// The message of the Error(input) that `action` must throw.
template <class Action>
std::string error_of(Action&& action) {
    const Refusal refused = refusal(action);
    return refused.code == ErrorCode::input ? refused.message : "wrong code: " + refused.message;
}
inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

template <class Number>
std::string little_endian(Number number) {
    return {reinterpret_cast<const char*>(&number), sizeof number};
}

// A pickle of protocol 4 without a memo. Pairs of integers under a key that ends in pool_id become tuples.
inline void pickle_to(std::string& out, const nlohmann::ordered_json& value, std::string_view key = {}) {
    switch (value.type()) {
        case nlohmann::json::value_t::object:
            out += "}(";
            for (const auto& [name, item] : value.items()) {
                pickle_to(out, name);
                pickle_to(out, item, name);
            }
            out += 'u';
            break;
        case nlohmann::json::value_t::array: {
            const bool tuple = key.ends_with("pool_id");
            if (!tuple) out += "](";
            for (const auto& item : value) pickle_to(out, item);
            out += tuple ? '\x86' : 'e';
            break;
        }
        case nlohmann::json::value_t::string: {
            const auto& text = value.get_ref<const std::string&>();
            out += 'X' + little_endian(static_cast<std::uint32_t>(text.size())) + text;
            break;
        }
        case nlohmann::json::value_t::boolean: out += value.get<bool>() ? '\x88' : '\x89'; break;
        case nlohmann::json::value_t::number_unsigned:
            out += std::string("\x8a\x09") + little_endian(value.get<std::uint64_t>()) + '\0';
            break;
        case nlohmann::json::value_t::number_integer:
            out += std::string("\x8a\x08") + little_endian(value.get<std::int64_t>());
            break;
        case nlohmann::json::value_t::number_float: {
            std::string bytes = little_endian(value.get<double>());
            std::reverse(bytes.begin(), bytes.end());
            out += 'G' + bytes;
            break;
        }
        default: out += 'N'; break;
    }
}

inline std::string pickle(const nlohmann::ordered_json& value) {
    std::string out = "\x80\x04";
    pickle_to(out, value);
    return out + '.';
}
inline std::string pickle_json(std::string_view json) { return pickle(nlohmann::ordered_json::parse(json)); }

}  // namespace fragsim::test
