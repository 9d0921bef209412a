#include "lib/report/text_table.hpp"

#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

TextTable example(const char* long_name = "short") {
    TextTable table({{"policy", TextTable::Align::left}, {"reserved"}, {"retries"}});
    table.add({{"caching"}, {"1.00 GiB"}, {"0", true}});
    table.add({{long_name}, {"900 MiB", true}, {"12"}});
    return table;
}

}  // namespace

TEST_CASE("columns line up, figures to the right, stars in a column of their own", "[unit][text-table]") {
    CHECK(example().render(0, false) ==
          "policy   reserved   retries\n"
          "caching  1.00 GiB         0*\n"
          "short     900 MiB*       12\n");
}

TEST_CASE("without a best value there is no room for stars", "[unit][text-table]") {
    TextTable table({{"policy", TextTable::Align::left}, {"reserved"}});
    table.add({{"caching"}, {"1.00 GiB"}});
    CHECK(table.render(0, false) == "policy   reserved\ncaching  1.00 GiB\n");
}

TEST_CASE("in a narrow terminal a long name stands on its own line and no line is wider", "[unit][text-table]") {
    const std::string text = example("split-capped:max_split_size_mb=128").render(40, false);
    CHECK(text ==
          "policy               reserved   retries\n"
          "caching              1.00 GiB         0*\n"
          "split-capped:max_split_size_mb=128\n"
          "                      900 MiB*       12\n");
}

TEST_CASE("a terminal too narrow for the figures still gets all of them", "[unit][text-table]") {
    const std::string text = example("split-capped").render(10, false);
    CHECK(text.find("900 MiB*") != std::string::npos);
    CHECK(text.find("split-capped") != std::string::npos);
}

TEST_CASE("the best value is bold where there is colour, and starred without", "[unit][text-table]") {
    const std::string colored = example().render(0, true);
    CHECK(colored.find("\x1b[1m") != std::string::npos);
    CHECK(colored.find("900 MiB*") != std::string::npos);
    CHECK(example().render(0, false).find('\x1b') == std::string::npos);
}

TEST_CASE("a table without rows is its head", "[unit][text-table]") {
    CHECK(TextTable({{"policy", TextTable::Align::left}, {"reserved"}}).render(80, false) == "policy  reserved\n");
}

TEST_CASE("long lines break at spaces, and what follows is indented", "[unit][report]") {
    CHECK(wrapped("one two three four\nfive\n", 9) == "one two\n  three\n  four\nfive\n");
    CHECK(wrapped("  one two three\n", 9) == "  one two\n    three\n");
    CHECK(wrapped("averyverylongword\n", 9) == "averyverylongword\n");
    CHECK(wrapped("one two three\n", 0) == "one two three\n");
    CHECK(wrapped("", 9) == "");
}
