// Pieces that every JSON document of fragsim is made of.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>

#include "lib/study/result_set.hpp"

namespace fragsim {

using Json = nlohmann::ordered_json;

// Documents that say which limits a replay had. Up to version 1 of them PyTorch's native policies took the capacity as
// their memory limit.
inline constexpr const char* kLimitsVersion = "2.0.0";

// {"schema", "tool", "argv"}: the head of a document.
Json json_head(std::string_view schema, const std::string& tool_version, const std::vector<std::string>& argv,
    std::string_view version = "1.0.0");
Json json_trace(const Recording& recording, const Trace& trace);
Json json_bytes(std::optional<Bytes> bytes);  // null for none
Json json_parameters(const Parameters& parameters);
Json json_result(const Result& result);
std::string to_text(const Json& document);  // indented, invalid UTF-8 replaced, with a newline at the end

}  // namespace fragsim
