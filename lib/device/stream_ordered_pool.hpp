// The driver's stream-ordered allocator, cudaMemPool: what a policy or a program can ask of it. On the host it is
// modelled (async_pool_model.hpp), on a GPU it is the driver's own.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lib/core/memory_picture.hpp"
#include "lib/core/types.hpp"

namespace fragsim {

// What the GPU has passed of the work given to it. The host cannot know, so a model has to assume.
enum class GpuProgress {
    idle,   // it has passed every free as soon as the call returns
    never,  // it passes nothing until the host waits for it
};

struct PoolProperties {
    Bytes release_threshold = 0;            // bytes that stay reserved when a synchronisation gives memory back
    bool follow_event_dependencies = true;  // cudaMemPoolReuseFollowEventDependencies, and so on
    bool allow_opportunistic = true;
    bool allow_internal_dependencies = true;
    std::optional<Bytes> max_size;             // reserved bytes never exceed it, rounded up to whole chunks
    GpuProgress progress = GpuProgress::idle;  // of the model; a GPU makes its own
};

class StreamOrderedPool {
public:
    static constexpr Bytes kChunk = 32 * kMiB;  // what a pool gets, moves and gives back

    virtual ~StreamOrderedPool() = default;

    struct Allocation {
        Address address;
        Bytes size;            // what the pool sets aside
        std::uint32_t handle;  // the pool's own, for free
    };
    // None: out of memory. `bytes` > 0.
    virtual std::optional<Allocation> allocate(Bytes bytes, StreamId stream) = 0;
    // The memory may be reused by what `stream` does from here on.
    virtual void free(const Allocation& allocation, StreamId stream) = 0;
    // The host waited for a stream; none: for all of them.
    virtual void synchronized(std::optional<StreamId> stream) = 0;
    // Gives memory back to the device until no more than `keep` bytes are reserved, as far as it is free.
    virtual void trim_to(Bytes keep) = 0;

    virtual Bytes reserved() const = 0;

    // Chunks that the last call took from the device or gave back, in order; a moved chunk is given back and taken.
    // Empty where the pool does not say.
    struct Change {
        bool mapped;
        Address address;
        Bytes bytes;
        bool moved;
    };
    virtual std::span<const Change> changes() const { return {}; }

    // For looking at it from outside; a pool that does not say has no free ranges.
    virtual Bytes idle_bytes() const { return 0; }  // in chunks without anything in use
    virtual Bytes largest_free() const { return 0; }
    virtual void free_sizes(std::vector<Bytes>&) const {}
    // The mapped ranges as segments, their free parts as inactive blocks; what is in use is active and has its handle
    // as buffer.
    virtual MemoryPicture picture() const { return {}; }
};

}  // namespace fragsim
