// The address space of a recorded process, read off the segments its allocator got: where its context ended, what
// process start had left free, which places libraries had taken, and where new chunks went beside the host's mappings.
// Source: spec/cudamalloc-addresses.md, sections 2 and 4.
#pragma once

#include "lib/device/cuda_malloc_addresses.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

struct AddressSpace {
    CudaMallocAddresses start;    // as before the first recorded call
    std::int64_t explained = 0;   // recorded cudaMallocs whose address the model gives, following the record
    bool from_recording = false;  // false: nothing to go by, a fresh process is assumed
};

// Without recorded segments, or with a history that begins in mid-run: a fresh process, with or without extra streams.
AddressSpace read_address_space(const Trace& trace);

// A fresh process that used the trace's streams.
AddressSpace fresh_address_space(const Trace& trace);

}  // namespace fragsim
