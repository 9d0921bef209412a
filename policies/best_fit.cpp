// Best fit over one arena.
#include "policies/fits/searches.hpp"

namespace fragsim {

PolicyInfo best_fit_policy() {
    return fits::fit_policy<fits::BestFit>("best-fit",
        "one arena; the smallest free block that is large enough, the lowest among equals.\nWith first-fit the "
        "low-fragmentation reference of the literature.",
        "Wilson, Johnstone et al. 1995, Dynamic Storage Allocation: A Survey and Critical Review");
}

}  // namespace fragsim
