#include "lib/report/text_table.hpp"

#include <algorithm>
#include <numeric>

namespace fragsim {
namespace {

constexpr std::size_t kGap = 2;

std::string pad(const std::string& text, std::size_t width, TextTable::Align align) {
    const std::string space(width > text.size() ? width - text.size() : 0, ' ');
    return align == TextTable::Align::left ? text + space : space + text;
}

}  // namespace

std::string bold(const std::string& text, bool color) { return color ? "\x1b[1m" + text + "\x1b[0m" : text; }

std::string wrapped(const std::string& text, int width) {
    if (width <= 0) return text;
    std::string out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string line = text.substr(begin, end - begin);
        const std::string indent(std::min(line.find_first_not_of(' '), line.size()) + 2, ' ');
        while (line.size() > static_cast<std::size_t>(width)) {
            const std::size_t space = line.rfind(' ', static_cast<std::size_t>(width));
            if (space == std::string::npos || space < indent.size()) break;  // one word
            out += line.substr(0, line.find_last_not_of(' ', space) + 1) + '\n';
            line = indent + line.substr(space + 1);
        }
        out += line;
        if (end < text.size()) out += '\n';
        begin = end + 1;
    }
    return out;
}

std::string TextTable::render(int width, bool color) const {
    const bool any_best = std::any_of(rows_.begin(), rows_.end(), [](const auto& row) {
        return std::any_of(row.begin(), row.end(), [](const Cell& cell) { return cell.best; });
    });
    // Figures keep their columns whether or not one of them is starred.
    const auto shown = [&](const Cell& cell, std::size_t column) {
        return columns_[column].align == Align::left || !any_best ? cell.text : cell.text + (cell.best ? "*" : " ");
    };
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::size_t widest = shown({columns_[c].title, false}, c).size();
        for (const auto& row : rows_) widest = std::max(widest, shown(row[c], c).size());
        widths.push_back(widest);
    }
    // The first column gives way when the table is too wide.
    const std::size_t rest =
        std::accumulate(widths.begin() + 1, widths.end(), std::size_t{0}) + kGap * (widths.size() - 1);
    if (width > 0 && widths[0] + rest > static_cast<std::size_t>(width))
        widths[0] = std::max<std::size_t>(columns_[0].title.size(),
            static_cast<std::size_t>(width) > rest ? static_cast<std::size_t>(width) - rest : 0);

    std::string out;
    const auto end_line = [&] {
        out.erase(out.find_last_not_of(' ') + 1);
        out += '\n';
    };
    for (std::size_t c = 0; c < columns_.size(); ++c)
        out += std::string(c == 0 ? 0 : kGap, ' ') +
               pad(shown({columns_[c].title, false}, c), widths[c], columns_[c].align);
    end_line();
    for (const auto& row : rows_) {
        const bool own_line = row[0].text.size() > widths[0];
        if (own_line) {
            out += row[0].text;
            end_line();
        }
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            const std::string text = c == 0 && own_line ? "" : shown(row[c], c);
            out += std::string(c == 0 ? 0 : kGap, ' ') + (row[c].best
                                                                 ? bold(pad(text, widths[c], columns_[c].align), color)
                                                                 : pad(text, widths[c], columns_[c].align));
        }
        end_line();
    }
    return out;
}

}  // namespace fragsim
