// What a driver call costs, in nanoseconds of the calling thread: medians measured on an idle card, interpolated.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/core/types.hpp"

namespace fragsim {

enum class DriverCallKind : std::uint8_t {
    malloc,
    free,
    reserve,
    unreserve,
    map,
    unmap,
    alias,
    unalias,
    malloc_async,
    free_async,
    trim,
    record,
    wait,
    synchronize,
};
const char* name(DriverCallKind kind);  // as the driver log spells it

// A measured point: a call on `bytes`, with no other allocation alive and with a hundred or more.
struct CostPoint {
    Bytes bytes;
    double alone_ns, crowded_ns;
};
using CostCurve = std::vector<CostPoint>;  // by ascending size, at least one point

class CostModel {
public:
    struct Profile {
        CostCurve malloc, free;             // cudaMalloc, cudaFree
        CostCurve reserve, unreserve;       // cuMemAddressReserve, cuMemAddressFree
        CostCurve create, map, set_access;  // cuMemCreate and cuMemMap of a page, cuMemSetAccess of a range
        CostCurve unmap, release;           // cuMemUnmap and cuMemRelease of a page
        CostCurve pool_grow;                // what cudaMallocAsync takes longer when the pool grows by that much
        double access_page_ns;              // cuMemSetAccess of a range: for each page of it beyond the first
        double pool_hit_ns, pool_free_ns;   // cudaMallocAsync from the pool's memory, cudaFreeAsync
        double pool_move_ns;                // for each chunk of 32 MiB that changes its place in a pool
        double record_ns, wait_ns;          // cudaEventRecord, cudaStreamWaitEvent
        double synchronize_ns;              // cudaStreamSynchronize of a stream that has nothing to do
    };
    explicit CostModel(Profile profile) : profile_(std::move(profile)) {}

    // The bundled profile (h200_costs.cpp).
    static const CostModel& h200();

    // `live`: allocations the process holds from the driver before the call.
    double malloc_ns(Bytes bytes, std::int64_t live) const;
    double free_ns(Bytes bytes, std::int64_t live) const;
    double reserve_ns(Bytes bytes) const;
    double unreserve_ns(Bytes bytes) const;
    double map_ns(Bytes bytes, Bytes page) const;    // create and map every page, then grant access to the range
    double unmap_ns(Bytes bytes, Bytes page) const;  // unmap and release every page
    double move_ns(Bytes page) const;                // unmap a page, map it elsewhere, grant access
    double alias_ns(Bytes bytes, Bytes page) const;  // map every page once more, then grant access
    double unalias_ns(Bytes bytes, Bytes page) const;
    double pool_grow_ns(Bytes bytes) const;
    double pool_release_ns(Bytes bytes) const;  // bytes in chunks of 32 MiB
    const Profile& profile() const { return profile_; }

private:
    double access_ns(Bytes bytes, Bytes page) const;

    Profile profile_;
};

}  // namespace fragsim
