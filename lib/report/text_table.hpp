// Columns of text, lined up.
#pragma once

#include <string>
#include <vector>

namespace fragsim {

class TextTable {
public:
    enum class Align { left, right };
    struct Cell {
        std::string text;
        bool best = false;  // marked with a star, and in bold where there is colour
    };

    struct Column {
        std::string title;
        Align align = Align::right;
    };

    explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

    void add(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

    const std::vector<Column>& columns() const { return columns_; }
    const std::vector<std::vector<Cell>>& rows() const { return rows_; }

    // `width` 0: as wide as it gets. Where the table is wider than `width`, first cells that make it so stand on a line
    // of their own above their row.
    std::string render(int width, bool color) const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
};

// Lines longer than `width` broken at spaces, what follows indented by two more. 0: as they are.
std::string wrapped(const std::string& text, int width);

// `text` in a terminal's bold.
std::string bold(const std::string& text, bool color);

}  // namespace fragsim
