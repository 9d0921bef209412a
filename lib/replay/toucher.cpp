#include "lib/replay/toucher.hpp"

namespace fragsim {

void Toucher::fill(BufferId buffer, const Placement& placement) {
    if (live_.size() < trace_.buffers.size()) live_.resize(trace_.buffers.size());
    live_[buffer.value] = placement;
    touch_.fill(placement.address, placement.allocated, pattern_of(buffer),
        device_.stream(trace_.buffers[buffer.value].stream_id()));
    device_.note_work();
}

void Toucher::check(BufferId buffer) {
    if (buffer.value >= live_.size() || live_[buffer.value].allocated == 0) return;
    const Placement& placement = live_[buffer.value];
    touch_.check(placement.address, placement.allocated, pattern_of(buffer),
        device_.stream(trace_.buffers[buffer.value].stream_id()));
    device_.note_work();
}

cuda::Touch::Spoilt Toucher::finish() {
    if (mode_ == TouchMode::verify)
        for (std::uint32_t buffer = 0; buffer < live_.size(); ++buffer) check({buffer});
    return touch_.spoilt();
}

}  // namespace fragsim
