// Sizes as people write and read them.
#pragma once

#include <string>
#include <string_view>

#include "lib/core/types.hpp"

namespace fragsim {

// "1024", "512B", "1.5GiB", "9.79GiB", "10GB" (decimal: 10^9), case-insensitive, rounded down to whole bytes.
// Throws Error(usage) for anything else; a bare "80G" is refused because it is ambiguous.
Bytes parse_size(std::string_view text);

// Three digits and a binary unit: "0 B", "512 B", "1.50 KiB", "19.7 GiB", "1023 MiB".
std::string format_size(Bytes bytes);

}  // namespace fragsim
