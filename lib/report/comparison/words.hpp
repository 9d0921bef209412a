// How a comparison is put into words: the same in every report.
#pragma once

#include <string>
#include <vector>

#include "lib/report/text_table.hpp"
#include "lib/study/comparison.hpp"

namespace fragsim {

std::string title_of(const RunName& run);     // "run.pickle, caching, capacity 9.79 GiB"
std::string setup_of(const RunName& run);     // the same without the trace
std::string limit_text(std::optional<Bytes> limit);  // "9.79 GiB", "none"
bool any_memory_limit(const Comparison& comparison);  // then tables have a column for it

// A difference as it stands in a table. Figures that look alike when rounded are given in full.
struct DifferenceWords {
    std::string metric, baseline, now, change, verdict, began;
};
DifferenceWords words_of(const Difference& difference);

// Those beyond their tolerance: what got worse, then what only changed, then what got better, then what a side lacks.
std::vector<const Difference*> shown_differences(const ComparedRun& run);

std::string headline(const ComparedRun& run);  // the first of them, and how many more; for one line
TextTable table_of(const std::vector<const Difference*>& differences);
std::string summary(const Comparison& comparison);  // "24 runs: 2 worse, 1 better, 21 the same"
std::string advice(const Comparison& comparison);   // what to do about it; "" when there is nothing to do

}  // namespace fragsim
