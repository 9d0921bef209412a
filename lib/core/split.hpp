// Cutting a list that people wrote.
#pragma once

#include <string_view>
#include <vector>

namespace fragsim {

// The parts of `text` between separators that stand outside square brackets; at least one.
inline std::vector<std::string_view> split_outside_brackets(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    int depth = 0;
    std::size_t start = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '[') ++depth;
        if (text[i] == ']') --depth;
        if (text[i] == separator && depth == 0) parts.push_back(text.substr(start, i - start)), start = i + 1;
    }
    parts.push_back(text.substr(start));
    return parts;
}

}  // namespace fragsim
