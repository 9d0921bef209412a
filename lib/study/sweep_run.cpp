#include "lib/study/sweep_run.hpp"

#include "lib/device/host_device.hpp"

namespace fragsim {

void check_values(const SweepRun& run) {
    const std::vector<Lifespan> none;
    HostDevice device({run.policy.info->device_bound(run.options.limits)});
    run.policy.info->make(run.policy.settings(), {device, run.options.limits, run.trace->pools, &none});
}

}  // namespace fragsim
