#include "lib/replay/lifespans.hpp"

namespace fragsim {

std::vector<Lifespan> lifespans_of(const Trace& trace) {
    const auto never = static_cast<std::uint32_t>(trace.events.size());
    std::vector<Lifespan> all(trace.buffers.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = {0, 0, trace.buffers[i].requested};
    for (const BlockPicture& block : trace.initial.blocks)
        if (block.state != BlockState::inactive) all[block.buffer.value].end = never;
    for (std::uint32_t i = 0; i < never; ++i) {
        const Event event = trace.events[i];
        if (event.kind() == EventKind::alloc) {
            all[event.subject].begin = i;
            all[event.subject].end = never;
        } else if (event.kind() == EventKind::free || event.kind() == EventKind::free_completed) {
            all[event.subject].end = i;
        }
    }
    return all;
}

}  // namespace fragsim
