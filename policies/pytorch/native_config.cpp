#include "policies/pytorch/native_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "lib/core/error.hpp"

namespace fragsim::pytorch {

TorchVersion parse_torch_version(std::string_view text) {
    TorchVersion version{0, 0};
    const char* const end = text.data() + text.size();
    const auto major = std::from_chars(text.data(), end, version.major);
    if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.') {
        const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
        const bool ends_well = minor.ptr == end || *minor.ptr == '.' || *minor.ptr == '+' || *minor.ptr == 'a';
        if (minor.ec == std::errc() && ends_well && version >= TorchVersion{2, 0}) return version;
    }
    throw Error(ErrorCode::usage, fmt::format("torch_version '{}' is not known", text),
        "write a version from 2.0 on, such as 2.11");
}

namespace {

// The divisor of the power-of-two interval that `size` falls into.
std::uint64_t divisions_for(const NativeConfig& config, Bytes size) {
    const int log2 = 63 - std::countl_zero(static_cast<std::uint64_t>(size));
    return config.roundup_power2_divisions[static_cast<std::size_t>(std::clamp(log2 - 20, 0, 15))];
}

// The next of `divisions` equal steps between two powers of two. `divisions` is a power of two.
Bytes round_up_power2(Bytes size, std::uint64_t divisions) {
    const auto n = static_cast<std::uint64_t>(size);
    if (std::has_single_bit(n)) return size;
    const std::uint64_t floor = std::bit_floor(n);
    const std::uint64_t step = floor / divisions;
    if (step == 0) return static_cast<Bytes>(floor * 2);
    return static_cast<Bytes>((n + step - 1) / step * step);
}

}  // namespace

Bytes NativeConfig::round_size(Bytes requested) const {
    if (requested < kMinBlock) return kMinBlock;
    const std::uint64_t divisions = requested < roundup_bypass_threshold ? divisions_for(*this, requested) : 0;
    if (divisions > 1 && static_cast<std::uint64_t>(requested) > kMinBlock * divisions)
        return round_up_power2(requested, divisions);
    return round_up(requested, kMinBlock);
}

std::optional<Bytes> NativeConfig::memory_limit(const Limits& limits) const {
    if (limits.memory_limit || per_process_memory_fraction >= 1 || !limits.capacity) return limits.memory_limit;
    // From 2.13 on the fraction is rounded to the nearest byte, before it was cut.
    const double part = per_process_memory_fraction * static_cast<double>(*limits.capacity);
    return static_cast<Bytes>(version >= TorchVersion{2, 13} ? part + 0.5 : part);
}

Bytes NativeConfig::segment_size(Bytes rounded) const { return torch_segment_size(rounded, large_segment_size); }

const std::vector<PolicyParameter>& native_parameters() {
    static const std::vector<PolicyParameter> parameters{
        {"max_split_size_mb", "MiB", "unlimited", "blocks of this size and more are not split; 20 or more"},
        {"max_non_split_rounding_mb", "MiB", "20", "an unsplit block may exceed the request by less than this"},
        {"garbage_collection_threshold", "0..1", "0",
            "part of the memory limit above which unused blocks are freed; 0: off"},
        {"roundup_power2_divisions", "count", "0",
            "steps between powers of two that sizes are rounded up to; N or [MiB:N,...,>:N]"},
        {"large_segment_size_mb", "MiB", "20", "segment for blocks between 1 and 10 MiB; 11 or more"},
        {"per_process_memory_fraction", "0..1", "1", "part of the capacity the process may reserve"},
        {"throw_on_cudamalloc_oom", "bool", "False", "refuse instead of releasing when the fraction would be exceeded"},
        {"no_split_pools", "pools", "[]", "MemPools made with no_split, as [0/1,0/2]; recordings do not say"},
        {"use_on_oom_pools", "pools", "[]", "MemPools made with use_on_oom, likewise"},
        {"torch_version", "version", "2.11", "PyTorch whose rules apply, from 2.0 on"},
    };
    return parameters;
}

namespace {

// "[0/1,0/2]"
std::vector<PoolName> parse_pools(std::string_view key, std::string_view text) {
    std::vector<PoolName> pools;
    const auto refuse = [&] {
        return Error(ErrorCode::usage, fmt::format("{} '{}' is not a list of pools", key, text),
            "write [0/1,0/2], as the snapshot names them");
    };
    if (text.size() < 2 || text.front() != '[' || text.back() != ']') throw refuse();
    const char* at = text.data() + 1;
    const char* const end = text.data() + text.size() - 1;
    while (at < end) {
        PoolName pool;
        const auto first = std::from_chars(at, end, pool.first);
        if (first.ec != std::errc() || first.ptr == end || *first.ptr != '/') throw refuse();
        const auto second = std::from_chars(first.ptr + 1, end, pool.second);
        if (second.ec != std::errc() || (second.ptr != end && *second.ptr != ',')) throw refuse();
        pools.push_back(pool);
        at = second.ptr + (second.ptr != end);
    }
    return pools;
}

}  // namespace

AllocConf read_native_parameters(const Parameters& given) {
    TorchVersion version;
    std::vector<PoolName> no_split_pools, use_on_oom_pools;
    std::string text;
    for (const auto& [key, value] : given) {
        // What turns a key off is no value of PyTorch's, which knows leaving it out only.
        if ((key == "max_split_size_mb" && value == "unlimited") ||
            ((key == "garbage_collection_threshold" || key == "roundup_power2_divisions") && value == "0"))
            continue;
        if (key == "torch_version")
            version = parse_torch_version(value);
        else if (key == "no_split_pools")
            no_split_pools = parse_pools(key, value);
        else if (key == "use_on_oom_pools")
            use_on_oom_pools = parse_pools(key, value);
        else
            text += fmt::format("{}{}:{}", text.empty() ? "" : ",", key, value);
    }
    AllocConf conf = parse_alloc_conf(text, version);
    conf.config.no_split_pools = std::move(no_split_pools);
    conf.config.use_on_oom_pools = std::move(use_on_oom_pools);
    return conf;
}

std::vector<std::string> keys_without_effect(const NativeConfig& config, const Limits& limits) {
    std::vector<std::string> advice;
    const auto say = [&](const char* text) { advice.emplace_back(text); };
    const bool split = config.max_split_size != kUnlimited;
    if (config.async_backend) {
        if (split || config.garbage_collection_threshold > 0 || config.expandable_segments)
            say("backend:cudaMallocAsync ignores every key of the native allocator");
        return advice;
    }
    if (config.garbage_collection_threshold > 0 && !config.memory_limit(limits))
        say("garbage_collection_threshold does nothing without a memory limit, however full the card: give --memory-limit");
    if (split && config.expandable_segments)
        say("max_split_size_mb with expandable_segments defeats both: blocks are kept that nothing may use");
    if (!split && config.max_non_split_rounding != config.large_segment_size)
        say("max_non_split_rounding_mb does nothing without max_split_size_mb");
    if (config.per_process_memory_fraction < 1 && !limits.capacity)
        say("per_process_memory_fraction does nothing without a capacity to take it of: give --capacity");
    if (config.throw_on_cudamalloc_oom && !limits.capacity)
        say("throw_on_cudamalloc_oom does nothing without a capacity: give --capacity");
    if (config.throw_on_cudamalloc_oom && config.per_process_memory_fraction < 1)
        say("throw_on_cudamalloc_oom does nothing beside per_process_memory_fraction, whose limit is checked first");
    return advice;
}

}  // namespace fragsim::pytorch
