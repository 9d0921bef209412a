// Measures what driver calls cost on a card, as the cost model takes it.
#pragma once

#include "lib/device/cost_model.hpp"
#include "lib/device/cuda_device.hpp"

namespace fragsim {

// Medians, on an idle card: of calls that get fresh memory one after the other, and of those that give it back. Sizes
// that do not fit into half of the free memory are left out. Takes some seconds. What it takes it gives back.
CostModel::Profile measure_costs(CudaDevice& device);

}  // namespace fragsim
