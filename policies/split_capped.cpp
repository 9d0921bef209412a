// PyTorch's native caching allocator with max_split_size_mb set: the setting people reach for first.
#include "policies/pytorch/native_policy.hpp"

namespace fragsim {

PolicyInfo split_capped_policy() {
    PolicyInfo info = pytorch::native_policy();
    info.name = "split-capped";
    info.summary =
        "caching with a cap on splitting: blocks of max_split_size_mb and more are handed out whole and\n"
        "released first when the device refuses. Less fragmentation under pressure, more reserved without.";
    info.required = {"max_split_size_mb"};
    return info;
}

}  // namespace fragsim
