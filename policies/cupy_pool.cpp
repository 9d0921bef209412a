// CuPy's memory pool; the rules are in policies/cupy/pool.hpp.
#include <algorithm>

#include "lib/policy/parameters.hpp"
#include "policies/cupy/pool.hpp"

namespace fragsim {
namespace {

// Source: CuPy's user guide, "Memory Management".
std::vector<OwnSetting> own_settings(std::optional<Bytes>) {
    return {
        {"the driver's pool", "async-pool:release_threshold_bytes=max",
            {{"CuPy", "cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)"}}},
        {"pool", "cupy-pool", {{"CuPy", "cupy.cuda.set_allocator(cupy.cuda.MemoryPool().malloc)"}}},
        {"no pool", "direct", {{"CuPy", "cupy.cuda.set_allocator(None)"}},
            "every free waits for the GPU, which is very slow", true},
    };
}

}  // namespace

PolicyInfo cupy_pool_policy() {
    PolicyInfo info;
    info.name = "cupy-pool";
    info.summary =
        "CuPy's memory pool: what was got for a request is kept for its stream, cut and joined again.\n"
        "Whole chunks go back when the limit or the device is in the way. Ties are CuPy's chance.";
    info.reference = "cupy/cuda/memory.pyx, cupy#7679; recordings of CuPy 14.2";
    info.parameters = {
        {"size", "bytes", "0", "MemoryPool.set_limit(size=...), CUPY_GPU_MEMORY_LIMIT: no more is got; 0: no limit"},
        {"fraction", "ratio", "0", "set_limit(fraction=...): the limit as a part of the card's memory; 0: no limit"},
    };
    info.own_settings = own_settings;
    info.memory_limit = PolicyInfo::MemoryLimit::reserved;
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("cupy-pool", known, given);
        std::optional<Bytes> limit = context.limits.memory_limit;
        const auto at_most = [&](Bytes bytes) { limit = std::min(limit.value_or(bytes), bytes); };
        if (const Bytes size = read.bytes("size"); size > 0) at_most(size);
        if (const double fraction = read.ratio("fraction", 0, 1); fraction > 0)
            at_most(static_cast<Bytes>(fraction * static_cast<double>(context.limits.capacity.value_or(
                                                      context.device.total_memory()))));
        return std::make_unique<cupy::Pool>(limit, context.device);
    };
    return info;
}

}  // namespace fragsim
