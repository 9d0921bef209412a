#include "policies/rmm/own_settings.hpp"

#include <fmt/format.h>

namespace fragsim::rmm {
namespace {

OwnSetting::Line resource(const std::string& made) {
    return {"RMM", "rmm.mr.set_current_device_resource(" + made + ")"};
}

}  // namespace

// Source: rapidsai/rmm, the Python interface's rmm.reinitialize and rmm.mr (07/2026); its asynchronous resource keeps what
// it has as far as the card goes unless a release threshold is given.
std::vector<OwnSetting> own_settings(std::optional<Bytes> capacity) {
    std::vector<OwnSetting> settings{
        {"the driver's pool", "async-pool:release_threshold_bytes=max",
            {resource("rmm.mr.CudaAsyncMemoryResource(initial_pool_size=0)")}},
        {"pool", "rmm-pool",
            {{"RMM", "rmm.reinitialize(pool_allocator=True, initial_pool_size=0)"}},
            "the pool has no maximum unless maximum_pool_size is given"},
    };
    // The whole of it in one piece, instead of pieces that double.
    if (capacity) {
        const Bytes whole = *capacity / 256 * 256;
        settings.push_back({"pool, all at the start",
            fmt::format("rmm-pool:initial_pool_bytes={0},maximum_pool_bytes={0}", whole),
            {{"RMM", fmt::format("rmm.reinitialize(pool_allocator=True, initial_pool_size={0}, maximum_pool_size={0})",
                 whole)}}});
    }
    settings.push_back({"bins over the pool", "rmm-binning",
        {resource("rmm.mr.BinningMemoryResource(rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), "
                  "initial_pool_size=0), 18, 22)")}});
    settings.push_back(
        {"arena", "rmm-arena", {resource("rmm.mr.ArenaMemoryResource(rmm.mr.CudaMemoryResource())")}});
    settings.push_back({"no pool", "direct", {resource("rmm.mr.CudaMemoryResource()")},
        "every free waits for the GPU, which is very slow", true});
    return settings;
}

}  // namespace fragsim::rmm
