// The memory as a snapshot shows it: the segments and blocks of one device at the end of the recording.
#pragma once

#include <optional>
#include <vector>

#include "lib/core/diagnostics.hpp"
#include "lib/trace/trace_builder.hpp"
#include "traces/pytorch_records.hpp"

namespace fragsim {

struct FinalPicture {
    std::optional<MemoryPicture> picture;  // streams and pools as the builder numbers them
    std::vector<std::uint32_t> stacks;     // of each block, numbers in SnapshotRecords or kNoStack
};

// Segments that contradict themselves or each other (blocks that do not tile them, overlaps) are counted in
// `diagnostics` and left out. No picture when the snapshot shows no segment of the device.
FinalPicture read_picture(const Snapshot& snapshot, int device, TraceBuilder& builder, Diagnostics& diagnostics);

// The segment that contains `address`, or null. `picture` is by address.
const SegmentPicture* segment_at(const MemoryPicture& picture, Address address);

}  // namespace fragsim
