// The parts of the HTML report that are files of their own in this folder, and the chart library; embed.cmake puts them
// into the program.
#pragma once

#include <string_view>

namespace fragsim::html {

extern const std::string_view page;                    // with places as {{name}} for the others and for the data
extern const std::string_view style, script;           // ours
extern const std::string_view library, library_style;  // dygraphs

}  // namespace fragsim::html
