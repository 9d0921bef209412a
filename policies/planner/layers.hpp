// Packing in layers, after STAlloc. Items of one size form chains that are disjoint in time; a chain is a layer as high
// as its items, layers are stacked, the largest size at the bottom. Before a size opens another layer, an item is tried
// in what is spare in the layers of larger sizes.
//
// STAlloc also fuses items that begin and end in the same phase of an iteration into one, and lays persistent ones out
// first; phases are not known here. Its spare room ends at the borders of a layer; here it does not.
#pragma once

#include "policies/planner/greedy.hpp"

namespace fragsim::planner {

Plan place_in_layers(const Problem& problem);

}  // namespace fragsim::planner
