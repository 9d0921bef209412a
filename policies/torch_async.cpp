// PyTorch's backend:cudaMallocAsync: the driver's pool with what PyTorch's wrapper adds.
//
// Approach: nothing is given back at synchronisations (threshold 2^64 - 1); sizes go to the driver as they are; a
// buffer that other streams have used is freed on a helper stream that has waited for all of them, so its memory comes
// back only where the pool looks beyond the own stream; the memory fraction limits the bytes in use, not those
// reserved. Source: spec/policies.md, section 1.5 (PyTorch c10/cuda/CUDAMallocAsyncAllocator.cpp). Differences from
// upstream: no graph capture. The waits of the helper stream are not counted as driver calls.
#include <limits>
#include <string>
#include <unordered_map>

#include "policies/async/pool_policy.hpp"

namespace fragsim {
namespace {

class TorchAsync final : public async::PoolPolicy {
public:
    TorchAsync(const PoolProperties& properties, double fraction, bool trim_retry, const PolicyContext& context)
        : PoolPolicy(properties, context.device), trim_retry_(trim_retry) {
        limit_ = context.limits.memory_limit;
        if (!limit_ && fraction < 1)
            limit_ = static_cast<Bytes>(
                fraction * static_cast<double>(context.limits.capacity.value_or(context.device.total_memory())));
    }

    void record_stream(BufferId buffer, StreamId stream) override {
        if (stream != buffers()[buffer.value].stream) used_on_[buffer.value].push_back(stream);
    }

private:
    static constexpr StreamId kHelper{1u << 16};  // beyond every stream of a trace

    std::optional<Place> place(const Request& request) override {
        if (limit_ && request.bytes > *limit_ - requested_in_hands()) return {};
        return PoolPolicy::place(request);
    }
    bool make_room() override {
        if (!trim_retry_) return false;
        if (!complete_pending()) device_.synchronize({});
        ++stats_.num_alloc_retries;
        empty_cache();
        return true;
    }
    StreamId stream_to_free_on(BufferId buffer, const Live& live) override {
        const auto used_on = used_on_.find(buffer.value);
        if (!live.waited && used_on == used_on_.end()) return live.stream;
        wait_for(live.stream);
        if (used_on != used_on_.end())
            for (const StreamId stream : used_on->second) wait_for(stream);
        return kHelper;
    }
    void wait_for(StreamId stream) {
        device_.record(stream);
        device_.wait(kHelper, stream);
    }

    std::optional<Bytes> limit_;  // on the bytes in use
    bool trim_retry_;
    std::unordered_map<std::uint32_t, std::vector<StreamId>> used_on_;  // by buffer: other streams recorded for it
};

}  // namespace

PolicyInfo torch_async_policy() {
    PolicyInfo info;
    info.name = "torch-async";
    info.summary =
        "PyTorch's backend:cudaMallocAsync: the driver's pool as async-pool, inside PyTorch's wrapper.\n"
        "Nothing goes back before empty_cache; max_split_size_mb and the other native keys have no effect.";
    info.reference = "PyTorch c10/cuda/CUDAMallocAsyncAllocator.cpp (2026)";
    info.remaps = true;
    info.memory_limit = PolicyInfo::MemoryLimit::used;
    info.other_bound = {"gpu_progress", "never"};
    info.parameters = {
        {"per_process_memory_fraction", "ratio", "1",
            "part of the capacity, or of the card, that requests may add up to; 1: the driver decides"},
        {"trim_retry", "bool", "false", "when the driver refuses: synchronise, trim and try again (not in 2.11)"},
    };
    for (const PolicyParameter& parameter : async::reuse_parameters()) info.parameters.push_back(parameter);
    info.alloc_conf = [](const Parameters&) { return std::string("backend:cudaMallocAsync"); };
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("torch-async", known, given);
        PoolProperties properties = async::read_reuse(read);
        properties.release_threshold = std::numeric_limits<Bytes>::max();
        return std::make_unique<TorchAsync>(
            properties, read.ratio("per_process_memory_fraction", 0, 1), read.flag("trim_retry"), context);
    };
    return info;
}

}  // namespace fragsim
