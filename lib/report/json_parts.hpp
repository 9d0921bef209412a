// Pieces that every JSON document of fragsim is made of.
#pragma once

#include <nlohmann/json.hpp>

#include "lib/study/result_set.hpp"

namespace fragsim {

using Json = nlohmann::ordered_json;

// {"schema", "tool", "argv"}: the head of a document.
Json json_head(std::string_view schema, const std::string& tool_version, const std::vector<std::string>& argv);
Json json_trace(const Recording& recording, const Trace& trace);
Json json_parameters(const Parameters& parameters);
Json json_result(const Result& result);
std::string to_text(const Json& document);  // indented, invalid UTF-8 replaced, with a newline at the end

}  // namespace fragsim
