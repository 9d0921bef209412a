// What a replay on a real device does with the memory that it gets.
#pragma once

namespace fragsim {

enum class TouchMode {
    none,
    write,   // every buffer is written when it is allocated
    verify,  // and looked at before it is freed
};

}  // namespace fragsim
