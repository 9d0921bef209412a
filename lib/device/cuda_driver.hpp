// The CUDA driver, loaded when it is first asked for: one program for machines with and without a GPU, built without
// CUDA. The declarations are those of cuda.h (CUDA 12 and 13) that fragsim calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/core/types.hpp"

namespace fragsim::cuda {

using Status = int;  // CUresult
using DevicePointer = unsigned long long;
using Context = struct CUctx_st*;
using Stream = struct CUstream_st*;
using Event = struct CUevent_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using MemoryPool = struct CUmemPoolHandle_st*;
using MemoryHandle = unsigned long long;

inline constexpr Status kSuccess = 0, kOutOfMemory = 2;
inline constexpr unsigned kStreamNonBlocking = 1, kEventDisableTiming = 2, kHostMapped = 2;
inline constexpr int kPinned = 1, kOnDevice = 1, kReadWrite = 3;  // allocation type, location type, access flags

struct Location {
    int type, id;
};
struct AllocationProperties {  // CUmemAllocationProp
    int type, handle_types;
    Location location;
    void* win32_meta_data;
    unsigned char flags[8];
};
struct AccessDescription {  // CUmemAccessDesc
    Location location;
    int flags;
};
struct PoolProperties {  // CUmemPoolProps
    int type, handle_types;
    Location location;
    void* win32_security_attributes;
    std::size_t max_size;
    unsigned char reserved[56];
};
static_assert(sizeof(AllocationProperties) == 32 && sizeof(AccessDescription) == 12 && sizeof(PoolProperties) == 88);

enum PoolAttribute {
    kFollowEventDependencies = 1,
    kAllowOpportunistic,
    kAllowInternalDependencies,
    kReleaseThreshold,
    kReservedCurrent,
};

// Every function by the name that cuda.h gives it, without the version suffix.
#define FRAGSIM_CUDA_FUNCTIONS(FUNCTION)                                                                              \
    FUNCTION(cuInit, "cuInit", unsigned)                                                                              \
    FUNCTION(cuDriverGetVersion, "cuDriverGetVersion", int*)                                                          \
    FUNCTION(cuDeviceGetCount, "cuDeviceGetCount", int*)                                                              \
    FUNCTION(cuDeviceGet, "cuDeviceGet", int*, int)                                                                   \
    FUNCTION(cuDeviceGetName, "cuDeviceGetName", char*, int, int)                                                     \
    FUNCTION(cuDeviceTotalMem, "cuDeviceTotalMem_v2", std::size_t*, int)                                              \
    FUNCTION(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", Context*, int)                                     \
    FUNCTION(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", int)                                          \
    FUNCTION(cuCtxSetCurrent, "cuCtxSetCurrent", Context)                                                             \
    FUNCTION(cuCtxSynchronize, "cuCtxSynchronize")                                                                    \
    FUNCTION(cuMemGetInfo, "cuMemGetInfo_v2", std::size_t*, std::size_t*)                                             \
    FUNCTION(cuMemAlloc, "cuMemAlloc_v2", DevicePointer*, std::size_t)                                                \
    FUNCTION(cuMemFree, "cuMemFree_v2", DevicePointer)                                                                \
    FUNCTION(cuMemHostAlloc, "cuMemHostAlloc", void**, std::size_t, unsigned)                                         \
    FUNCTION(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", DevicePointer*, void*, unsigned)              \
    FUNCTION(cuMemFreeHost, "cuMemFreeHost", void*)                                                                   \
    FUNCTION(cuMemAddressReserve, "cuMemAddressReserve", DevicePointer*, std::size_t, std::size_t, DevicePointer,     \
        unsigned long long)                                                                                           \
    FUNCTION(cuMemAddressFree, "cuMemAddressFree", DevicePointer, std::size_t)                                        \
    FUNCTION(cuMemCreate, "cuMemCreate", MemoryHandle*, std::size_t, const AllocationProperties*, unsigned long long) \
    FUNCTION(cuMemRelease, "cuMemRelease", MemoryHandle)                                                              \
    FUNCTION(cuMemMap, "cuMemMap", DevicePointer, std::size_t, std::size_t, MemoryHandle, unsigned long long)         \
    FUNCTION(cuMemUnmap, "cuMemUnmap", DevicePointer, std::size_t)                                                    \
    FUNCTION(cuMemSetAccess, "cuMemSetAccess", DevicePointer, std::size_t, const AccessDescription*, std::size_t)     \
    FUNCTION(cuStreamCreate, "cuStreamCreate", Stream*, unsigned)                                                     \
    FUNCTION(cuStreamDestroy, "cuStreamDestroy_v2", Stream)                                                           \
    FUNCTION(cuStreamSynchronize, "cuStreamSynchronize", Stream)                                                      \
    FUNCTION(cuStreamWaitEvent, "cuStreamWaitEvent", Stream, Event, unsigned)                                         \
    FUNCTION(cuEventCreate, "cuEventCreate", Event*, unsigned)                                                        \
    FUNCTION(cuEventDestroy, "cuEventDestroy_v2", Event)                                                              \
    FUNCTION(cuEventRecord, "cuEventRecord", Event, Stream)                                                           \
    FUNCTION(cuMemPoolCreate, "cuMemPoolCreate", MemoryPool*, const PoolProperties*)                                  \
    FUNCTION(cuMemPoolDestroy, "cuMemPoolDestroy", MemoryPool)                                                        \
    FUNCTION(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", MemoryPool, int, void*)                                  \
    FUNCTION(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", MemoryPool, int, void*)                                  \
    FUNCTION(cuMemPoolTrimTo, "cuMemPoolTrimTo", MemoryPool, std::size_t)                                             \
    FUNCTION(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", DevicePointer*, std::size_t, MemoryPool, Stream)     \
    FUNCTION(cuMemFreeAsync, "cuMemFreeAsync", DevicePointer, Stream)                                                 \
    FUNCTION(cuModuleLoadData, "cuModuleLoadData", Module*, const void*)                                              \
    FUNCTION(cuModuleUnload, "cuModuleUnload", Module)                                                                \
    FUNCTION(cuModuleGetFunction, "cuModuleGetFunction", Function*, Module, const char*)                              \
    FUNCTION(cuLaunchKernel, "cuLaunchKernel", Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,  \
        unsigned, Stream, void**, void**)

struct Driver {
#define FRAGSIM_CUDA_MEMBER(member, symbol, ...) Status (*member)(__VA_ARGS__);
    FRAGSIM_CUDA_FUNCTIONS(FRAGSIM_CUDA_MEMBER)
#undef FRAGSIM_CUDA_MEMBER
    Status (*cuGetErrorName)(Status, const char**);

    // Throws Error(environment): no driver on this machine, or one without what is needed.
    static const Driver& get();

    const char* name(Status status) const;  // as cuda.h spells it
    // Throws Error(environment) that names the call, the error and the size, unless the call succeeded.
    void check(Status status, const char* call, Bytes bytes = 0) const;
};

}  // namespace fragsim::cuda
