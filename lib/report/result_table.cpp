#include "lib/report/result_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"

namespace fragsim {
namespace {

std::string survival(const Result& result) {
    return result.survives() ? "yes" : fmt::format("no, {} OOM", format_count(result.failures()));
}

// Stars the rows with the smallest value of a metric, unless all have it.
std::vector<bool> best(const std::vector<const Result*>& results, std::string_view key) {
    std::vector<double> values;
    for (const Result* result : results) values.push_back(result->real(key));
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    std::vector<bool> stars;
    for (const double value : values) stars.push_back(*low != *high && value == *low);
    return stars;
}

const std::vector<TextTable::Column> kColumns{{"", TextTable::Align::left}, {"survives", TextTable::Align::left},
    {"reserved"}, {"change"}, {"over need"}, {"retries"}, {"driver"}};

}  // namespace

std::string recorded_oom_lines(const std::vector<Result>& results) {
    std::string out;
    for (std::size_t i = 0; i < results.front().recorded_ooms.size(); ++i) {
        const RecordedOomAnswer& recorded = results.front().recorded_ooms[i];
        out += fmt::format(
            "recorded out of memory before op {} ({}):", format_count(recorded.op), format_size(recorded.requested));
        for (const bool served : {true, false}) {
            std::string who;
            for (const Result& result : results)
                if (i < result.recorded_ooms.size() && result.recorded_ooms[i].served == served)
                    who += (who.empty() ? "" : ", ") + result.label;
            if (!who.empty()) out += fmt::format("\n  {} by {}", served ? "served" : "refused", who);
        }
        out += '\n';
    }
    return out;
}

TextTable result_table(
    const std::string& title, const std::vector<std::string>& labels, const std::vector<const Result*>& results) {
    std::vector<TextTable::Column> columns = kColumns;
    columns.front().title = title;
    TextTable table(columns);
    const auto reserved_stars = best(results, "reserved_bytes.all.peak"),
               retry_stars = best(results, "num_alloc_retries"), driver_stars = best(results, "driver_time_ns");
    for (std::size_t i = 0; i < results.size(); ++i) {
        const Result& result = *results[i];
        table.add(
            {{labels[i]}, {survival(result)}, {format_size(result.count("reserved_bytes.all.peak")), reserved_stars[i]},
                {i == 0 ? ""
                        : format_change(result.real("reserved_bytes.all.peak"),
                              results.front()->real("reserved_bytes.all.peak"))},
                {format_ratio(result.real("overhead_over_load"))},
                {format_count(result.count("num_alloc_retries")), retry_stars[i]},
                {format_duration(result.real("driver_time_ns")), driver_stars[i]}});
    }
    return table;
}

}  // namespace fragsim
