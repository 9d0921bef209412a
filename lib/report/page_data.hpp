// What the HTML page shows, as one document: every figure a result's own. Keys that a trace has nothing for are absent,
// and the page leaves their section out.
#pragma once

#include "lib/report/json_parts.hpp"

namespace fragsim {

// Columns of numbers that change little are written as their first value and the differences from it on.
Json page_data(const ResultSet& set);

// A document deflated (zlib's format) and in base64: what a page can hold whatever the text in it, and a browser can
// unpack.
std::string packed(const Json& document);

}  // namespace fragsim
