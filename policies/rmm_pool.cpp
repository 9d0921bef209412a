// RMM's pool memory resource; the rules are in policies/rmm/pool.hpp.
#include "policies/rmm/own_settings.hpp"
#include "policies/rmm/pool.hpp"

namespace fragsim {

PolicyInfo rmm_pool_policy() {
    PolicyInfo info;
    info.name = "rmm-pool";
    info.summary =
        "RAPIDS' pool: best fit, a free list for each stream, others' blocks after a wait; grows by doubling.\n"
        "Memory goes back to the device before the end only where the maximum is in the way of a request.";
    info.reference = "rapidsai/rmm pool_memory_resource (26.10)";
    info.parameters = rmm::pool_parameters();
    info.own_settings = rmm::own_settings;
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        return std::make_unique<rmm::Pool>(
            rmm::read_pool_config(ParameterReader("rmm-pool", known, given)), context.device);
    };
    return info;
}

}  // namespace fragsim
