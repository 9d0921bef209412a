// Next fit over one arena.
#include "policies/fits/searches.hpp"

namespace fragsim {

PolicyInfo next_fit_policy() {
    return fits::fit_policy<fits::NextFit>("next-fit",
        "one arena; the next free block that is large enough, from where the last allocation ended.\nSpreads what "
        "lives over the whole arena; in practice the worst of the four.",
        "Knuth, The Art of Computer Programming, volume 1, section 2.5");
}

}  // namespace fragsim
