// Figures as reports print them.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "lib/metrics/catalog.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

std::string format_metric(const Metric& metric);               // by the unit in the catalog
std::string format_ratio(double ratio);                        // "12.3 %"
std::string format_change(double candidate, double baseline);  // "-12.3 %", "=" when equal
std::string format_duration(double nanoseconds);               // three digits and a unit
std::string format_mib(Bytes bytes);                         // "10,024.0 MiB": for figures that are to add up
std::string whole_mib(Bytes bytes);                          // "10,024 MiB", rounded up
std::string format_count(std::int64_t count);                  // "24,119"
std::string_view name(Completeness completeness);              // "complete", "mid-run", ...
std::string describe(Completeness completeness);               // a sentence's end

}  // namespace fragsim
