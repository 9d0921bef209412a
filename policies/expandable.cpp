// PyTorch's native caching allocator with expandable segments.
#include "policies/pytorch/native_policy.hpp"

namespace fragsim {

PolicyInfo expandable_policy() {
    PolicyInfo info = pytorch::native_policy({{"expandable_segments", "True"}});
    info.name = "expandable";
    info.summary =
        "caching with expandable_segments:True: segments grow page by page inside a reserved range, so that\n"
        "few remainders are left. Driver calls are small and many.";
    return info;
}

}  // namespace fragsim
