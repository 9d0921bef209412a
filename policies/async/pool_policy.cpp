#include "policies/async/pool_policy.hpp"

#include <algorithm>

namespace fragsim::async {

std::vector<PolicyParameter> reuse_parameters() {
    return {
        {"reuse_follow_event_dependencies", "bool", "true",
            "a stream may take what another freed before an event that it waited for; no trace records events"},
        {"reuse_allow_opportunistic", "bool", "true",
            "a stream may take what another freed once the GPU has passed it"},
        {"reuse_allow_internal_dependencies", "bool", "true",
            "rather than fail, a stream takes what another still uses and waits for it"},
        {"gpu_progress", "idle|never", "idle",
            "the host model's assumption: a free is passed at once, or only a synchronisation completes it"},
    };
}

PoolProperties read_reuse(const ParameterReader& read) {
    PoolProperties properties;
    properties.follow_event_dependencies = read.flag("reuse_follow_event_dependencies");
    properties.allow_opportunistic = read.flag("reuse_allow_opportunistic");
    properties.allow_internal_dependencies = read.flag("reuse_allow_internal_dependencies");
    properties.progress = read.choice<GpuProgress>("gpu_progress");
    return properties;
}

std::optional<AccountingPolicy::Place> PoolPolicy::place(const Request& request) {
    const auto allocation = pool_->allocate(request.bytes, request.stream);
    account(allocation ? allocation->size : 0);
    if (!allocation) return {};
    return Place{allocation->address, allocation->size, allocation->handle};
}

void PoolPolicy::give_back(const Place& place, StreamId stream) {
    pool_->free({place.address, place.size, place.handle}, stream);
    account();
}

// As a program does it: nothing that is pending can go back, so it waits for the device first.
void PoolPolicy::empty_cache() {
    device_.synchronize({});
    synchronize({});
    trim();
}

void PoolPolicy::trim() {
    pool_->trim_to(0);
    account();
}

void PoolPolicy::synchronize(std::optional<StreamId> stream) {
    pool_->synchronized(stream);
    account();
}

void PoolPolicy::account(Bytes handed_out) {
    const Bytes change = pool_->reserved() - stats_.reserved_bytes.all.current;
    if (change > 0) add_reserved(change, change / StreamOrderedPool::kChunk);
    if (change < 0) remove_reserved(-change, -change / StreamOrderedPool::kChunk);
    // Free memory in chunks that hold anything in use cannot go back.
    const Bytes split = pool_->reserved() - pool_->idle_bytes() - stats_.active_bytes.all.current - handed_out;
    stats_.inactive_split_bytes.all.change(split - stats_.inactive_split_bytes.all.current);
}

MemoryPicture PoolPolicy::picture() const {
    MemoryPicture picture = pool_->picture();  // nothing where the pool is a driver's, which does not say
    std::uint32_t handles = 0;
    for (const BlockPicture& block : picture.blocks)
        if (block.buffer) handles = std::max(handles, block.buffer.value + 1);
    if (handles == 0) return picture;
    const std::vector<BufferId> buffer_of = buffers_by_handle(handles);
    for (BlockPicture& block : picture.blocks) {
        if (!block.buffer) continue;
        block.buffer = buffer_of[block.buffer.value];
        block.requested = buffers()[block.buffer.value].requested;
        block.state = buffers()[block.buffer.value].state;
    }
    return picture;
}

}  // namespace fragsim::async
