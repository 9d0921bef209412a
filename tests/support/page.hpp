// What an HTML report holds, taken out of it again.
#pragma once

#include <zlib.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/core/types.hpp"
#include "tests/support/catch.hpp"

namespace fragsim::test {

inline std::string from_base64(const std::string& text) {
    static const std::string kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char digit : text) {
        if (digit == '=') break;
        const std::size_t value = kDigits.find(digit);
        REQUIRE(value != std::string::npos);
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> count & 0xff);
    }
    return bytes;
}

inline std::string inflated(const std::string& bytes) {
    z_stream stream{};
    REQUIRE(inflateInit(&stream) == Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    std::string out;
    int status = Z_OK;
    while (status == Z_OK) {
        std::array<char, 65536> part;
        stream.next_out = reinterpret_cast<Bytef*>(part.data());
        stream.avail_out = part.size();
        status = inflate(&stream, Z_NO_FLUSH);
        out.append(part.data(), part.size() - stream.avail_out);
    }
    inflateEnd(&stream);
    REQUIRE(status == Z_STREAM_END);
    return out;
}

inline nlohmann::json data_of_page(const std::string& page) {
    const std::string begin = "id=\"data\">";
    const std::size_t at = page.find(begin) + begin.size();
    return nlohmann::json::parse(inflated(from_base64(page.substr(at, page.find('<', at) - at))));
}

// Numbers from the first one and the differences from it on.
inline std::vector<Bytes> summed(const nlohmann::json& differences) {
    std::vector<Bytes> values;
    for (const auto& difference : differences)
        values.push_back((values.empty() ? 0 : values.back()) + difference.get<Bytes>());
    return values;
}

}  // namespace fragsim::test
