// Worst fit over one arena.
#include "policies/fits/searches.hpp"

namespace fragsim {

PolicyInfo worst_fit_policy() {
    return fits::fit_policy<fits::WorstFit>("worst-fit",
        "one arena; the largest free block, the lowest among equals.\nLeaves large rests at first and destroys every "
        "large block in the end.",
        "Wilson, Johnstone et al. 1995, Dynamic Storage Allocation: A Survey and Critical Review");
}

}  // namespace fragsim
