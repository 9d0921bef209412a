// What one command found out: results by trace, as reports take them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/study/explain.hpp"
#include "lib/study/run.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

struct TraceResults {
    const Recording* recording;   // outlives the set
    const Trace* trace;           // one of the recording's
    std::vector<Result> results;  // as the policies were given; the first is what the others are compared with
    std::optional<Explanation> explanation = {};  // if one was asked for
};

struct ResultSet {
    std::string tool_version;
    std::vector<std::string> argv;
    std::vector<TraceResults> traces;
};

}  // namespace fragsim
