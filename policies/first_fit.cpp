// First fit over one arena.
#include "policies/fits/searches.hpp"

namespace fragsim {

PolicyInfo first_fit_policy() {
    return fits::fit_policy<fits::FirstFit>("first-fit",
        "one arena; the lowest free block that is large enough.\nKeeps the high end free, so that it can be given "
        "back.",
        "Wilson, Johnstone et al. 1995, Dynamic Storage Allocation: A Survey and Critical Review");
}

}  // namespace fragsim
