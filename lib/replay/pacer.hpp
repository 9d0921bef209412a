// Keeps the recording's time between events, for a replay on a real device.
#pragma once

#include <chrono>
#include <thread>

#include "lib/replay/replay.hpp"

namespace fragsim {

class Pacer final : public ReplayObserver {
public:
    // `factor`: 2 leaves twice the recorded time. The trace must have time stamps and outlive this.
    Pacer(const Trace& trace, double factor) : trace_(trace), factor_(factor) {}

    void before(const Step& step) override {
        if (!started_) {
            started_ = Clock::now();
            first_us_ = trace_.time_us[step.event];
        }
        const auto due = static_cast<double>(trace_.time_us[step.event] - first_us_) * factor_;
        std::this_thread::sleep_until(
            *started_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::micro>(due)));
    }
    void observe(const Step&) override {}

private:
    using Clock = std::chrono::steady_clock;

    const Trace& trace_;
    double factor_;
    std::optional<Clock::time_point> started_;
    std::int64_t first_us_ = 0;
};

}  // namespace fragsim
