// The settings of PyTorch's native caching allocator: the keys of PYTORCH_CUDA_ALLOC_CONF that decide where blocks go,
// and the PyTorch version whose rules apply.
// Source: spec/pytorch-caching-allocator.md, sections 1, 13 and 17.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lib/policy/policy.hpp"
#include "lib/policy/torch_segments.hpp"

namespace fragsim::pytorch {

struct TorchVersion {
    int major = 2, minor = 11;
    friend constexpr auto operator<=>(TorchVersion, TorchVersion) = default;
};
// "2.11", "2.11.0+cu130". Throws Error(usage), also for versions before 2.0.
TorchVersion parse_torch_version(std::string_view text);

inline constexpr Bytes kMinBlock = 512;                   // smallest block and the unit of rounding
inline constexpr Bytes kRequestCeiling = Bytes{1} << 60;  // more fails before anything else happens
inline constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

struct NativeConfig {
    TorchVersion version;

    Bytes max_split_size = kUnlimited;         // blocks of this size and more are not split
    Bytes large_segment_size = kLargeSegment;      // segments for blocks between 1 and 10 MiB
    Bytes max_non_split_rounding = 20 * kMiB;  // an unsplit block may exceed the request by less than this
    double garbage_collection_threshold = 0;   // part of the limit; 0: off
    std::array<std::uint64_t, 16> roundup_power2_divisions{};  // entry k: sizes in [2^k, 2^(k+1)) MiB; 0 and 1: off
    Bytes roundup_bypass_threshold = kUnlimited;  // requests of this size and more skip the table (2.0 only)
    double per_process_memory_fraction = 1;
    bool throw_on_cudamalloc_oom = false;
    bool expandable_segments = false;
    bool async_backend = false;  // backend:cudaMallocAsync
    std::vector<PoolName> no_split_pools,
        use_on_oom_pools;  // MemPools made with these options; no recording says which

    bool never_splits(const PoolName& pool) const { return contains(no_split_pools, pool); }
    bool lends_on_oom(const PoolName& pool) const { return contains(use_on_oom_pools, pool); }
    // Up to 2.3 private pools took whole segments from cudaMalloc.
    bool expandable_in(unsigned memory_pool) const { return memory_pool == 0 || version >= TorchVersion{2, 4}; }
    // Does a request for this memory pool mean that the device must not be waited for? Up to 2.12 any pool's scope did,
    // from 2.13 on only a graph's.
    bool captures(std::uint16_t memory_pool, const std::vector<PoolName>& names) const {
        if (memory_pool == 0) return false;
        return version < TorchVersion{2, 13} || memory_pool >= names.size() || names[memory_pool].first != 0;
    }

    bool serial_tie_break() const { return version >= TorchVersion{2, 13}; }  // else equal sizes go by address

    // What the process may reserve; none: no limit. The fraction is of the whole card, for which the capacity stands.
    // A program that calls set_per_process_memory_fraction overrides the key (section 7).
    std::optional<Bytes> memory_limit(const Limits& limits) const;

    Bytes round_size(Bytes requested) const;  // section 3
    Bytes segment_size(Bytes rounded) const;  // section 4.3

private:
    static bool contains(const std::vector<PoolName>& pools, const PoolName& pool) {
        return std::find(pools.begin(), pools.end(), pool) != pools.end();
    }
};

// What reading a settings string found worth saying: values that PyTorch reads differently than they look.
struct AllocConf {
    NativeConfig config;
    Parameters values;  // key, value as written, the last of each
    std::vector<std::string> warnings;
};

// Reads PYTORCH_CUDA_ALLOC_CONF as that version of PyTorch does. Throws Error(usage) where it refuses, with the place.
AllocConf parse_alloc_conf(std::string_view text, TorchVersion version);

// The parameters that `caching` and its variants take: PyTorch's keys and `torch_version`.
const std::vector<PolicyParameter>& native_parameters();
AllocConf read_native_parameters(const Parameters& given);

// Keys that do nothing together.
std::vector<std::string> keys_without_effect(const NativeConfig& config, const Limits& limits);

}  // namespace fragsim::pytorch
