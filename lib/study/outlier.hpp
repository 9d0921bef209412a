// Of several ranks or devices that should do the same, the one that does not, and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/study/inspect.hpp"

namespace fragsim {

struct Outlier {
    std::size_t index;
    double difference;  // (figure - reference) / reference
    std::vector<std::string>
        reasons;  // what about its program differs from the reference's; empty: nothing that is known here
};

// The one whose figure is farthest from the lower median's, if by more than `threshold` of it. With two, the larger.
// `figures` and `summaries` belong together, by index.
std::optional<Outlier> find_outlier(
    const std::vector<double>& figures, const std::vector<TraceSummary>& summaries, double threshold = 0.05);

}  // namespace fragsim
