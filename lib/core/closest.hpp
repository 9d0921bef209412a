// "Did you mean": the known name nearest to an unknown one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fragsim {

// The candidate with the smallest edit distance to `name`; empty when none is near (over a third of its letters
// differ).
std::string_view closest(std::string_view name, const std::vector<std::string_view>& candidates);

// A hint for an unknown name: "did you mean 'NEAR'?", or, when none is near, "known: A, B".
std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace fragsim
