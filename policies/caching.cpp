// PyTorch's native caching allocator under its native settings; the rules are in policies/pytorch/.
#include "policies/pytorch/native_policy.hpp"

namespace fragsim {

PolicyInfo caching_policy() {
    PolicyInfo info = pytorch::native_policy();
    info.name = "caching";
    info.summary =
        "PyTorch's native caching allocator: best fit in a small and a large pool per stream, segments are\n"
        "kept until the device refuses. Parameters are the native keys of PYTORCH_ALLOC_CONF.";
    return info;
}

}  // namespace fragsim
