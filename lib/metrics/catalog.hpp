// The metrics there are: key, unit, which direction is better, what it means. `list metrics`, the reports and
// comparisons read this; the code that fills a metric is elsewhere.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/policy/allocator_stats.hpp"

namespace fragsim {

enum class Unit { bytes, count, ratio, nanoseconds };
enum class Better { lower, higher, neither };

struct MetricInfo {
    std::string key;  // as torch.cuda.memory_stats() spells it, where it has the notion
    Unit unit;
    Better better;
    std::string description;
};

struct Metric {
    std::string key;
    std::variant<std::int64_t, double> value;  // bytes and counts are integers, ratios and times are not
};
double real(const Metric& metric);

// In the order reports print them.
const std::vector<MetricInfo>& metric_catalog();
const MetricInfo* find_metric(std::string_view key);  // null: no such metric

// PyTorch's statistics under their own names: "reserved_bytes.all.peak", ...
void for_each_statistic(
    const AllocatorStats& stats, const std::function<void(const std::string& key, Bytes value)>& visit);

}  // namespace fragsim
