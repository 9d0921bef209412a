// What a replay stands on: the physical device, and a policy on it at the trace's initial state.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lib/device/cuda_device.hpp"
#include "lib/device/host_device.hpp"
#include "lib/replay/replay.hpp"
#include "lib/study/run.hpp"

namespace fragsim {

// The device of a run. A CUDA device is opened once for all repetitions.
class Hardware {
public:
    Hardware(const Trace& trace, const PolicySpec& spec, const RunOptions& options);

    Device& device() { return cuda_ ? static_cast<Device&>(*cuda_) : *host_; }
    HostDevice* host() { return host_ ? &*host_ : nullptr; }  // null: it is a CUDA device
    CudaDevice* cuda() { return cuda_ ? &*cuda_ : nullptr; }  // null: it is the host model

private:
    std::optional<HostDevice> host_;
    std::optional<CudaDevice> cuda_;
};

// All but the results must outlive this.
class Setup {
public:
    Setup(const Trace& trace, const PolicySpec& spec, const RunOptions& options, Hardware& hardware);
    ~Setup();
    Setup(const Setup&) = delete;
    Setup& operator=(const Setup&) = delete;

    LoggedDevice& device() { return device_; }
    Policy& policy() { return *policy_; }
    const Restored& restored() const { return restored_; }

private:
    Hardware& hardware_;
    LoggedDevice device_;
    std::vector<Lifespan> lifespans_;
    std::unique_ptr<Policy> policy_;
    Restored restored_;
};

// Where the recorded run did not get what it asked for: the first Result::kMaxRecordedOoms such events.
std::vector<std::uint32_t> recorded_oom_events(const Trace& trace);

// Would the policy serve the request that the recorded run did not get, at event `event`? Asking changes the state, so
// it takes a replay of its own up to there. `look` sees the state in which the request was served or
// refused, and the op that would have come next.
RecordedOomAnswer ask_recorded_oom(const Trace& trace, const PolicySpec& spec, const RunOptions& options,
    std::uint32_t event, const std::function<void(Setup& setup, std::uint32_t op)>& look = {});

}  // namespace fragsim
