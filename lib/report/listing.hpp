// What there is to choose from as one JSON document: policies with their parameters, trace formats, metrics, reports.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/policy/policy.hpp"
#include "lib/trace/format.hpp"

namespace fragsim {

struct Listing {
    std::span<const PolicyInfo> policies;
    std::span<const FormatInfo> formats;
};

// `kind`: "policies", "formats", "metrics" or "reports"; "" for all.
std::string listing_json(const Listing& listing, std::string_view kind, const std::string& tool_version,
    const std::vector<std::string>& argv);

}  // namespace fragsim
