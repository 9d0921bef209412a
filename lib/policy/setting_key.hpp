// A key of an allocator's settings string, and the values of it worth searching.
#pragma once

#include <string>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim {

struct SettingKey {
    std::string name;                 // as the settings string spells it
    std::string part;                 // those of one name make one list: name:[part:value,...]; "": the whole key
    std::vector<std::string> values;  // as written; "": not set
    // Of each value, ascending: what sizes are compared with (SameCourse). Empty: any two values may differ.
    std::vector<Bytes> bytes;
    std::size_t unset = 0;  // index into `values` of the default
    // Another key, if it is set: smaller values than its are refused, and this one not set is as good as it. "": none.
    std::string floor;
    bool with_expandable = false;  // means anything beside expandable segments
};

}  // namespace fragsim
