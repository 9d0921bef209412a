// Sources that turn compressed bytes into plain ones while they are read, with buffers of fixed size.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lib/trace/input.hpp"

namespace fragsim {

bool is_gzip(std::string_view head);
bool is_zstd(std::string_view head);

// `stored` gives the compressed bytes, `name` is for messages. Several members (gzip) or frames (zstd) one after
// another are read as one. Reading throws Error(input) when the data is damaged or ends too early.
std::unique_ptr<ByteSource> gunzip(std::unique_ptr<ByteSource> stored, std::string name);
std::unique_ptr<ByteSource> unzstd(std::unique_ptr<ByteSource> stored, std::string name);

}  // namespace fragsim
