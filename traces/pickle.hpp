// A pickle read as plain data: the opcodes of protocols 0 to 5, without those that import or call something.
//
// The machine knows syntax only. It numbers lists and dicts as they are created and tells a sink what goes into them;
// what the sink does not keep is gone, so no document tree builds up. The memo (what a pickle can refer back to) holds
// eight bytes an entry and keeps identity: two references to one list carry the same list number.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lib/trace/input.hpp"
#include "traces/pickle_value.hpp"

namespace fragsim {

// Thrown by a sink that does not like what it sees; the reader turns it into Error(input) with file and position.
struct Malformed {
    std::string what, hint;
};

class PickleSink {
public:
    virtual ~PickleSink() = default;
    // Keys and values in turn, an even number. A dict may be filled in several calls.
    virtual void set_items(std::uint32_t dict, std::span<const Value> keys_and_values) = 0;
    virtual void append(std::uint32_t list, std::span<const Value> items) = 0;
    // Must return a value of kind tuple.
    virtual Value tuple(std::span<const Value> items) = 0;
};

// Reads one pickle and returns its value. Throws Error(input): damaged, truncated, or asking for code to run.
Value read_pickle(Input& input, PickleValues& values, PickleSink& sink);

}  // namespace fragsim
