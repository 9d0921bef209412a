// cudaMallocAsync on a pool of its own: the driver's stream-ordered allocator, as a program without PyTorch uses it.
//
// Rationale: an allocation and a free are operations of a stream, so memory can change hands without the host waiting.
// Approach and source: lib/device/async_pool_model.hpp, the measured rule. A buffer that other streams have used is
// freed on its own stream when the recording saw the free complete.
// gpu_progress: the pool reuses what the GPU has passed, which no recording says. `idle` and `never` are the two
// bounds.
#include "policies/async/pool_policy.hpp"

namespace fragsim {

PolicyInfo async_pool_policy() {
    PolicyInfo info;
    info.name = "async-pool";
    info.summary =
        "cudaMallocAsync by its measured rule: best fit in stream order, over 32 MiB chunks that can move.\n"
        "A live byte pins its chunk. What the GPU has passed is not recorded; gpu_progress assumes it.";
    info.reference = "NVIDIA driver 580.159.04, CUDA 13.0, measured on an H200";
    info.remaps = true;
    info.other_bound = {"gpu_progress", "never"};
    info.parameters = {
        {"release_threshold_bytes", "bytes", "0",
            "a synchronisation that completes frees gives back what is reserved beyond it; max: nothing"},
        {"max_size_bytes", "bytes", "0", "the pool does not grow beyond it, rounded up to 32 MiB; 0: no bound"},
    };
    for (const PolicyParameter& parameter : async::reuse_parameters()) info.parameters.push_back(parameter);
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("async-pool", known, given);
        PoolProperties properties = async::read_reuse(read);
        properties.release_threshold = read.bytes_or_max("release_threshold_bytes");
        if (const Bytes most = read.bytes("max_size_bytes"); most > 0) properties.max_size = most;
        return std::make_unique<async::PoolPolicy>(properties, context.device);
    };
    return info;
}

}  // namespace fragsim
