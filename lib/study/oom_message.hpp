// Reads a pasted out-of-memory message. PyTorch's carry figures, rounded to two decimals of a unit: each is read as the
// range of bytes that would be printed so. Messages of other libraries are told apart and carry none.
//
// Source of the wordings: c10/cuda/CUDACachingAllocator.cpp of PyTorch 1.1 to 2.11, where the error is raised.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim {

// From `low` to `high` bytes, both included.
struct ByteRange {
    Bytes low = 0, high = 0;

    friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// How PyTorch put it. What "cached" and "reserved" mean changed with the words.
enum class OomWording {
    none,            // not PyTorch's, or cut off before the first figure
    cached,          // up to 1.3: allocated, free, and cached = reserved but unallocated
    reserved_total,  // 1.4 to 2.0: allocated, free, and reserved in total
    by_process,      // since 2.1: what each process holds, and reserved but unallocated
    async_pool,      // the cudaMallocAsync backend: allocated, free, limits
};

// Whose message it is.
enum class OomOrigin { torch, torch_cpu, cuda, cublas, cudnn, nccl, jax, tensorflow, unknown };

struct OomMessage {
    OomOrigin origin = OomOrigin::unknown;
    OomWording wording = OomWording::none;
    bool hip = false;
    std::string versions;  // of PyTorch that word it so: "2.2 and later"
    int messages = 0;      // of PyTorch's with figures in the text; the first is read

    std::optional<int> gpu;
    // What the allocator wanted of the driver: the size of a new segment, not the size of the tensor.
    std::optional<ByteRange> requested;
    std::optional<ByteRange> total, free;       // of the card
    std::optional<ByteRange> allowed;           // limit of the memory fraction
    std::optional<ByteRange> in_use;            // by this process, memory outside PyTorch's allocator included
    std::optional<ByteRange> allocated;         // `in_private_pools` included
    std::optional<ByteRange> in_private_pools;  // free there, and for their graphs only
    std::optional<ByteRange> reserved;          // in total
    std::optional<ByteRange> unallocated;       // reserved, neither allocated nor in private pools
    struct Process {
        std::string pid;
        ByteRange in_use;
    };
    std::vector<Process> others;

    bool impossible_in_use = false;    // a process is said to hold more than the card has: the driver did not know
    bool expandable_in_force = false;  // the text sets expandable_segments:True, the message's own advice aside
};

// Tracebacks, log prefixes, colours and line breaks around and inside the message do not matter.
OomMessage read_oom_message(std::string_view text);

const char* name(OomOrigin origin);  // "torch", "cublas", ...
const char* name(OomWording wording);

}  // namespace fragsim
