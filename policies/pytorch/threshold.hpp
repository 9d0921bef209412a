// A setting that sizes are compared with, which remembers the sizes: between two of them its value makes no difference.
#pragma once

#include <algorithm>

#include "policies/pytorch/native_config.hpp"

namespace fragsim::pytorch {

class Threshold {
public:
    explicit Threshold(Bytes value) : value_(value) {}

    Bytes value() const { return value_; }

    // Is `size` at least the threshold?
    bool reached_by(Bytes size) {
        const bool reached = size >= value_;
        (reached ? up_to_ : above_) = reached ? std::min(up_to_, size) : std::max(above_, size);
        return reached;
    }

    // The values in (above, up_to] would have given every answer that this one gave.
    SameCourse same_course(std::string_view parameter) const { return {parameter, above_, up_to_}; }

private:
    Bytes value_;
    Bytes above_ = 0, up_to_ = kUnlimited;
};

}  // namespace fragsim::pytorch
