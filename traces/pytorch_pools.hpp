// Which memory pool each allocation of a history belongs to, where the file does not say.
//
// Entries carry their pool only since about PyTorch 2.13. Before, the picture of the memory at the end tells it for
// segments that are still there; for those released earlier it is inferred, in this order:
//   1. An expandable segment lies in one reserved range: released parts belong to the pool of the nearest part of the
//      same stream and size class that is left.
//   2. The order of a release: the default pool goes first and gives back large segments before small ones, a private
//   pool
//      small ones before large ones. A large segment behind a small one of the same release is a private pool's, a
//      small one before all large ones too; a large one before all small ones is the default pool's, and a small one
//      behind all large ones.
//   3. Allocations on one stream go to one pool for as long as a capture or a MemPool scope lasts: the pool of the
//      allocation before on that stream, else of the one after.
// A release of a private pool's memory also shows that nothing referred to the pool any more: release_pool is inserted
// before it, and a release of nothing but one pool's memory becomes the end of that pool (empty_pool).
#pragma once

#include "lib/trace/trace.hpp"

namespace fragsim {

// Fills Buffer::pool and adds events; sets Trace::inferred_pools if anything rested on rules 1 to 3. Leaves traces
// without private pools alone. `recorded`: the entries carried their pools.
void infer_pools(Trace& trace, bool recorded);

}  // namespace fragsim
