// One input through one reader: whatever the bytes are, it gives a recording or throws Error(input). The fuzzers and
// the test that replays the corpus share this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "lib/core/error.hpp"
#include "lib/trace/trace_limits.hpp"
#include "tests/fuzz/span_source.hpp"
#include "traces/registry.hpp"
#include "traces/text.hpp"

namespace fragsim::fuzz {

inline void read_any(std::string_view format, const std::uint8_t* data, std::size_t size) {
    for (const FormatInfo& info : trace_formats()) {
        if (info.name != format) continue;
        Input input(std::make_unique<SpanSource>(data, size), "fuzz");
        info.detect(input.head());
        try {
            for (const Trace& trace : info.read(input).traces) {
                check_limits(trace, "fuzz");
                write_text(trace);
            }
        } catch (const Error& error) {
            if (error.code() != ErrorCode::input) std::abort();
        }
    }
}

}  // namespace fragsim::fuzz
