// Uses the memory that a policy hands out on a real device: writes it when it is allocated, and looks before it is
// freed whether it still holds what was written.
#pragma once

#include <vector>

#include "lib/device/cuda_device.hpp"
#include "lib/device/cuda_touch.hpp"
#include "lib/replay/replay.hpp"
#include "lib/replay/touch_mode.hpp"

namespace fragsim {

class Toucher final : public ReplayObserver {
public:
    // Both must outlive this.
    Toucher(const Trace& trace, CudaDevice& device, TouchMode mode) : trace_(trace), device_(device), mode_(mode) {}

    // Looks at a buffer that the program is about to let go.
    void before(const Step& step) override {
        const bool lets_go = step.kind == EventKind::free || step.kind == EventKind::free_requested;
        if (lets_go && mode_ == TouchMode::verify) check(step.buffer);
    }
    void observe(const Step& step) override {
        if (step.placement) fill(step.buffer, *step.placement);
        if (step.kind == EventKind::free || step.kind == EventKind::free_requested) live_[step.buffer.value] = {};
    }
    // Looks at what is still live and waits for everything. What was not as written, of all buffers.
    cuda::Touch::Spoilt finish();

private:
    static std::uint32_t pattern_of(BufferId buffer) { return (buffer.value + 1) * 0x9e3779b1u | 1u; }
    void fill(BufferId buffer, const Placement& placement);
    void check(BufferId buffer);

    const Trace& trace_;
    CudaDevice& device_;
    TouchMode mode_;
    cuda::Touch touch_;
    std::vector<Placement> live_;  // by buffer; allocated == 0: not live
};

}  // namespace fragsim
