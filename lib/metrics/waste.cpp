#include "lib/metrics/waste.hpp"

#include <algorithm>

namespace fragsim {
namespace {

Bytes releasable_bytes(const SegmentPicture& segment, const BlockPicture& block, Bytes page) {
    if (segment.block_count == 1) return block.size;
    if (page == 0) return 0;
    const auto begin = static_cast<Bytes>(block.address - segment.address), end = begin + block.size;
    return std::max<Bytes>(0, end / page * page - round_up(begin, page));
}

// Where free bytes count that cannot be given back.
Bytes& kept_for(Waste& waste, Barrier barrier) {
    switch (barrier) {
        case Barrier::other_pool: return waste.private_pools;
        case Barrier::other_stream: return waste.other_streams;
        case Barrier::other_size_class: return waste.other_size_class;
        case Barrier::none: break;
    }
    return waste.pinned;
}

}  // namespace

Waste waste_of(const Policy& policy, const MemoryPicture& picture, const Request& asking) {
    Waste waste;
    for (const SegmentPicture& segment : picture.segments) {
        const Barrier barrier = policy.barrier(segment, asking);
        // A pool that graphs or MemPools still refer to gives nothing back for others.
        const bool held = barrier == Barrier::other_pool && segment.pool != 0;
        for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
            const BlockPicture& block = picture.blocks[i];
            if (block.state == BlockState::active_pending_free) {
                waste.pending += block.size;
            } else if (block.state == BlockState::active_allocated) {
                const Bytes rounded = std::min(block.size, policy.rounded(block.requested));
                waste.requested += block.requested;
                waste.rounding += rounded - block.requested;
                waste.unsplit += block.size - rounded;
            } else {
                const Bytes releasable = held ? 0 : releasable_bytes(segment, block, policy.page_of(segment));
                waste.releasable += releasable;
                kept_for(waste, barrier) += block.size - releasable;
            }
        }
    }
    return waste;
}

WasteRecorder::WasteRecorder(const Trace& trace, const Policy& policy, const Request& asking, std::uint32_t samples)
    : policy_(policy), asking_(asking), every_(std::max(1u, trace.ops / std::max(1u, samples))),
      last_(trace.ops == 0 ? 0 : trace.ops - 1) {
    const Waste waste = waste_of(policy, policy.picture(), asking);
    if (waste.reserved() > 0) samples_.push_back({0, waste, true});
}

void WasteRecorder::observe(const Step& step) {
    if (!is_op(step.kind) || (step.op % every_ != 0 && step.op != last_)) return;
    samples_.push_back({step.op, waste_of(policy_, policy_.picture(), asking_)});
}

}  // namespace fragsim
