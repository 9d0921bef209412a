// Traces written down by hand, in the letters of the plain text form (design.md) with sizes people can read:
//   a ID SIZE [STREAM]   allocation; SIZE: 512, 5M, 1M+1, 10M-512 (K, M, G are powers of two)
//   f ID / c ID          free / that free becomes effective (no `c` anywhere: at once)
//   r ID STREAM, e, s [STREAM], m TEXT
// Statements end with a semicolon or a line.
#pragma once

#include <string_view>

#include "lib/trace/trace.hpp"

namespace fragsim::test {

Bytes bytes_of(std::string_view text);
Trace script(std::string_view text);

}  // namespace fragsim::test
