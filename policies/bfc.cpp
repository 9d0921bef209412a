// BFC, "best fit with coalescing": the allocator of TensorFlow, XLA and JAX.
//
// Rationale: one large region for the process, or regions of doubling size, are cheaper than a driver call an
// allocation. Approach: best fit over the free chunks of all regions; a chunk is cut only when it is at least twice as
// large as needed or the rest is large, so that less is cut and more is wasted inside; regions go back only to make
// room for a larger one. Source: spec/policies.md, section 4.
//
// Where the rules come from: best fit, cutting, joining, growth and backing off from XLA's
// xla/tsl/framework/bfc_allocator.cc (2026), which TensorFlow's bfc_allocator.cc shares; backpedal_once from the latter
// only. Regions under virtual memory, their pages and the limit in whole pages from recorded runs of JAX 0.11.2 on an
// H200: regions lie where cuMemAddressReserve puts ranges, upwards, and decide which of two equal chunks is the lower.
// Regions that adjoin do not join: 32 MiB and 64 MiB side by side, all free, have a largest free chunk of 64 MiB (XLA's
// device_mem_allocator.h: SupportsCoalescing() holds only for one reservation that grows, which JAX does not ask for).
// Differences from upstream: one search over all bins (the same chunk comes out: bins are size classes searched upward,
// each ordered by size and address); no waiting for another thread's free, no chunks that are not yet safe on the GPU,
// no spatial partitioning.
#include <algorithm>

#include "lib/core/ordered_blocks.hpp"
#include "lib/policy/block_policy.hpp"
#include "lib/policy/parameters.hpp"

namespace fragsim {
namespace {

enum class Suballocator { virtual_memory, cuda_malloc };

struct BfcConfig {
    Bytes limit;              // on the sum of all regions
    Bytes first_region;       // regions double from here
    Bytes max_fragmentation;  // a chunk with that much more than needed is cut
    bool garbage_collection;  // regions without anything in use go back when the limit is in the way
    bool backpedal_once;      // smaller regions are tried only the first time that the device refuses
    bool virtual_memory;      // a region is a range of address space with memory under it, not a cudaMalloc
};

class Bfc final : public BlockPolicy {
public:
    static constexpr Bytes kAlign = 256, kPage = 2 * kMiB;

    Bfc(const BfcConfig& config, Device& device)
        : BlockPolicy(device, StreamOrder::inserted), config_(config), region_(config.first_region) {}

    Bytes alignment() const override { return kAlign; }
    Bytes largest_free() const override { return free_.largest(); }
    void free_sizes(std::vector<Bytes>& out) const override {
        for (auto p = free_.begin(); p != OrderedBlocks::end(); p = free_.next(p)) out.push_back(free_.size(p));
    }

private:
    BlockIndex take(const Request& request) override;
    void retire(BlockIndex chunk, StreamId) override;

    BlockIndex take_free(Bytes size);
    bool extend(Bytes size, StreamId stream);
    bool release_free_regions(Bytes size);
    std::optional<Address> get_region(Bytes& bytes, StreamId stream);
    void give_back_region(const Segment& region);
    Bytes pool_bytes() const { return stats_.reserved_bytes.all.current; }
    void insert(BlockIndex b) { free_.insert({block(b).size, block(b).address}, b); }
    void erase(BlockIndex b) { free_.erase(OrderedBlocks::Key{block(b).size, block(b).address}); }

    BfcConfig config_;
    Bytes region_;  // size of the next one
    bool has_backpedalled_ = false;
    OrderedBlocks free_;  // by (size, address)
};

BlockPolicy::BlockIndex Bfc::take(const Request& request) {
    const Bytes size = round_up(request.bytes, kAlign);
    BlockIndex chunk = take_free(size);
    if (chunk == kNone && extend(size, request.stream)) chunk = take_free(size);
    if (chunk == kNone && config_.garbage_collection && release_free_regions(size) && extend(size, request.stream))
        chunk = take_free(size);
    return chunk;
}

BlockPolicy::BlockIndex Bfc::take_free(Bytes size) {
    const auto best = free_.lower_bound(size);
    if (best == OrderedBlocks::end()) return kNone;
    const BlockIndex chunk = free_.block(best);
    free_.erase(best);
    const Bytes slack = block(chunk).size - size;
    if (slack >= size || slack >= config_.max_fragmentation)
        if (slack > 0) insert(split(chunk, size));
    return chunk;
}

bool Bfc::extend(Bytes size, StreamId stream) {
    const Bytes available = (config_.limit - pool_bytes()) / kAlign * kAlign;
    if (size > available) return false;
    bool grown = false;
    for (; size > region_; grown = true) region_ *= 2;
    Bytes bytes = std::min(region_, available);
    std::optional<Address> address = get_region(bytes, stream);
    if (!address && !(config_.backpedal_once && has_backpedalled_)) {
        has_backpedalled_ = true;
        while (!address) {
            const Bytes less = round_up(bytes / 10 * 9 + bytes % 10 * 9 / 10, kAlign);
            bytes = less < bytes ? less : bytes - kAlign;
            if (bytes < size) return false;
            address = get_region(bytes, stream);
        }
    }
    if (!address) return false;
    if (!grown) region_ *= 2;
    insert(add_segment(*address, bytes, stream));
    return true;
}

// False: there is none, or all of them together would not make room.
bool Bfc::release_free_regions(Bytes size) {
    Bytes free = 0;
    for (const Segment& region : segments())
        if (region.first != kNone && region.used_blocks == 0) free += region.size;
    if (free == 0 || size > config_.limit - pool_bytes() + free) return false;
    for (std::size_t i = 0; i < segments().size(); ++i) {
        const Segment region = segments()[i];
        if (region.first == kNone || region.used_blocks > 0) continue;
        erase(region.first);
        remove_segment(region.first);
        give_back_region(region);
    }
    return true;
}

// `bytes` becomes what there is: whole pages of virtual memory.
std::optional<Address> Bfc::get_region(Bytes& bytes, StreamId stream) {
    if (!config_.virtual_memory) return device_.malloc(bytes, stream);
    const Bytes mapped = round_up(bytes, kPage);
    const Address address = device_.reserve(mapped, stream);
    if (!device_.map(address, mapped, mapped, stream)) {
        device_.unreserve(address, mapped, stream);
        return {};
    }
    bytes = mapped;
    return address;
}

void Bfc::give_back_region(const Segment& region) {
    if (!config_.virtual_memory) return device_.free(region.address, region.size, region.stream);
    device_.unmap(region.address, region.size, region.size, region.stream);
    device_.unreserve(region.address, region.size, region.stream);
}

void Bfc::retire(BlockIndex chunk, StreamId) {
    insert(coalesce(chunk, [&](BlockIndex neighbour) { erase(neighbour); }));
}

// Source: docs/gpu_memory_allocation.rst of JAX (0.4 to 0.11), jaxlib's xla_client.py; TensorFlow's guide to GPUs and the
// hint that its bfc_allocator.cc prints.
std::vector<OwnSetting> settings_of_jax_and_tensorflow(std::optional<Bytes>) {
    return {
        {"the driver's pool", "async-pool:release_threshold_bytes=max",
            {{"JAX", "export XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"},
                {"TensorFlow", "export TF_GPU_ALLOCATOR=cuda_malloc_async"}}},
        {"one region of 95 % at the start", "bfc:allow_growth=false,memory_fraction=0.95",
            {{"JAX", "export XLA_PYTHON_CLIENT_PREALLOCATE=true XLA_PYTHON_CLIENT_MEM_FRACTION=.95"},
                {"TensorFlow", "export TF_FORCE_GPU_ALLOW_GROWTH=false"}},
            "newer versions of JAX spell the fraction XLA_CLIENT_MEM_FRACTION, and refuse both names together"},
        {"regions as needed", "bfc",
            {{"JAX", "export XLA_PYTHON_CLIENT_PREALLOCATE=false"},
                {"TensorFlow", "export TF_FORCE_GPU_ALLOW_GROWTH=true"}},
            "JAX keeps to 75 % of the card all the same, unless XLA_PYTHON_CLIENT_MEM_FRACTION says otherwise"},
        {"no pool", "direct", {{"JAX", "export XLA_PYTHON_CLIENT_ALLOCATOR=platform"}},
            "every free waits for the GPU, which is very slow", true},
    };
}

}  // namespace

PolicyInfo bfc_policy() {
    PolicyInfo info;
    info.name = "bfc";
    info.summary =
        "TensorFlow's and JAX's allocator: best fit in regions of doubling size, chunks are rarely cut.\n"
        "JAX gets one region at the start: bfc:allow_growth=false,memory_fraction=0.75.";
    info.reference = "TensorFlow bfc_allocator.cc; openxla/xla xla/tsl/framework/bfc_allocator.cc (2026); runs of JAX 0.11.2";
    info.parameters = {
        {"memory_limit_bytes", "bytes", "0", "no more is reserved; 0: memory_fraction decides"},
        {"memory_fraction", "ratio", "1", "the limit as a part of the capacity, or of the card's memory"},
        {"allow_growth", "bool", "true",
            "regions of 2 MiB, 4 MiB, ... as needed; false: one region of the limit at once"},
        {"max_internal_fragmentation_bytes", "bytes", "128MiB",
            "a chunk with that much more than needed is cut, also when it is less than twice as large"},
        {"garbage_collection", "bool", "true", "free regions go back when the limit is in the way of a request"},
        {"backpedal_once", "bool", "false",
            "smaller regions are tried only the first time that the device refuses (older TensorFlow)"},
        {"suballocator", "virtual_memory|cuda_malloc", "virtual_memory",
            "where regions come from: ranges of address space with memory under them (XLA), or cudaMalloc (TensorFlow)"},
    };
    info.own_settings = settings_of_jax_and_tensorflow;
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("bfc", known, given);
        BfcConfig config{read.bytes("memory_limit_bytes"), 0, read.bytes("max_internal_fragmentation_bytes"),
            read.flag("garbage_collection"), read.flag("backpedal_once"),
            read.choice<Suballocator>("suballocator") == Suballocator::virtual_memory};
        const double fraction = read.ratio("memory_fraction", 0, 1);
        const Bytes whole_pages = context.budget() / Bfc::kPage * Bfc::kPage;
        if (config.limit > 0) {
            if (config.virtual_memory) config.limit = round_up(config.limit, Bfc::kPage);
        } else {
            config.limit = static_cast<Bytes>(fraction * static_cast<double>(context.budget()));
            if (config.virtual_memory) config.limit = std::min(round_up(config.limit, Bfc::kPage), whole_pages);
        }
        const Bytes first = read.flag("allow_growth") ? std::min(config.limit, 2 * kMiB) : config.limit;
        config.first_region = std::max(round_up(first, Bfc::kAlign), Bfc::kAlign);
        return std::make_unique<Bfc>(config, context.device);
    };
    return info;
}

}  // namespace fragsim
