// Tables in the documentation that a test writes: with FRAGSIM_APPROVE=1 (scripts/approve_golden.sh) it puts what the code
// does there, without it compares.
#pragma once

#include <string>

namespace fragsim::test {

// `file` is relative to the repository. The table stands between "<!-- SECTION: written by a test -->" and the next
// "<!-- end -->".
void check_written_table(const std::string& file, const std::string& section, const std::string& table);

}  // namespace fragsim::test
