#include "lib/study/sweep_run.hpp"

#include "lib/device/host_device.hpp"

namespace fragsim {

void check_values(const SweepRun& run) {
    const std::vector<Lifespan> none;
    HostDevice device({run.policy.info->limits_itself ? std::nullopt : run.options.capacity});
    run.policy.info->make(run.policy.settings(), {device, run.options.capacity, run.trace->pools, &none});
}

}  // namespace fragsim
