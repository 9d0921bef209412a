// Results side by side, as the table and the page show them.
#pragma once

#include <string>
#include <vector>

#include "lib/report/text_table.hpp"
#include "lib/study/run.hpp"

namespace fragsim {

// Rows of results that are alike but for their policy or their trace; changes are against the first. `title` stands
// over the labels.
TextTable result_table(
    const std::string& title, const std::vector<std::string>& labels, const std::vector<const Result*>& results);

// Which policies would have served what the recorded run did not get; a line each request and two for the answers, ""
// when there was none.
std::string recorded_oom_lines(const std::vector<Result>& results);

}  // namespace fragsim
