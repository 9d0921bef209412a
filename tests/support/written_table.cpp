#include "tests/support/written_table.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"

namespace fragsim::test {

void check_written_table(const std::string& file, const std::string& section, const std::string& table) {
    const std::string path = source_dir() + "/" + file;
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const std::string document = text.str(), mark = "<!-- " + section + ": written by a test -->\n";
    const std::size_t mark_at = document.find(mark), begin = mark_at + mark.size();
    REQUIRE(mark_at != std::string::npos);
    const std::size_t end = document.find("<!-- end -->\n", begin);
    REQUIRE(end != std::string::npos);
    if (std::getenv("FRAGSIM_APPROVE")) {
        std::ofstream(path) << document.substr(0, begin) << table << document.substr(end);
        return;
    }
    INFO("if the change is meant: scripts/approve_golden.sh");
    CHECK(document.substr(begin, end - begin) == table);
}

}  // namespace fragsim::test
