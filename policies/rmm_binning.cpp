// RMM's binning resource: requests up to a size come from bins of equal blocks, larger ones from the pool above.
//
// Rationale: small requests are many, and blocks of one size need no search and do not fragment. Approach: a bin for
// each power of two; a bin gets chunks of blocks_per_chunk blocks from the pool, one at the start, and keeps them;
// a stream takes the oldest of the blocks it freed, then those of other streams after a wait.
// Source: spec/policies.md, section 3.3 (rapidsai/rmm, 26.10: binning_memory_resource, fixed_size_memory_resource).
#include <algorithm>
#include <deque>

#include "policies/rmm/own_settings.hpp"
#include "policies/rmm/pool.hpp"

namespace fragsim {
namespace {

class Binning final : public rmm::Pool {
public:
    Binning(const rmm::PoolConfig& pool, int min_exponent, int max_exponent, int blocks_per_chunk, Device& device)
        : Pool(pool, device), blocks_per_chunk_(blocks_per_chunk) {
        for (int exponent = min_exponent; exponent <= max_exponent; ++exponent) {
            bins_.push_back({Bytes{1} << exponent, {}});
            add_chunk(bins_.size() - 1, kDefaultStream);
        }
    }

    Bytes largest_free() const override {
        Bytes largest = Pool::largest_free();
        for (const Bin& bin : bins_)
            if (std::any_of(bin.lists.begin(), bin.lists.end(), [](const auto& list) { return !list.empty(); }))
                largest = std::max(largest, bin.size);
        return largest;
    }
    void free_sizes(std::vector<Bytes>& out) const override {
        Pool::free_sizes(out);
        for (const Bin& bin : bins_)
            for (const auto& list : bin.lists) out.insert(out.end(), list.size(), bin.size);
    }

private:
    struct Bin {
        Bytes size;
        std::vector<std::deque<BlockIndex>> lists;  // as the pool's: oldest first
    };

    BlockIndex take(const Request& request) override;
    void retire(BlockIndex block, StreamId stream) override;
    bool add_chunk(std::size_t bin, List list);
    std::deque<BlockIndex>& blocks_of_bin(std::size_t bin, List list) {
        if (list >= bins_[bin].lists.size()) bins_[bin].lists.resize(list + 1u);
        return bins_[bin].lists[list];
    }

    int blocks_per_chunk_;
    std::vector<Bin> bins_;  // by size
};

BlockPolicy::BlockIndex Binning::take(const Request& request) {
    const auto bin = std::find_if(bins_.begin(), bins_.end(), [&](const Bin& b) { return b.size >= request.bytes; });
    const List own = list_of(request.stream);
    if (bin == bins_.end()) return take_bytes(request.bytes, own);
    const auto index = static_cast<std::size_t>(bin - bins_.begin());
    const auto pop = [&](List list) {
        auto& blocks = blocks_of_bin(index, list);
        const BlockIndex oldest = blocks.front();
        blocks.pop_front();
        return oldest;
    };
    if (!blocks_of_bin(index, own).empty()) return pop(own);
    for (List other = 0; other < bin->lists.size(); ++other)
        if (!bin->lists[other].empty()) {
            wait(own, other);
            return pop(other);
        }
    return add_chunk(index, own) ? pop(own) : kNone;
}

bool Binning::add_chunk(std::size_t bin, List list) {
    const Bytes size = bins_[bin].size;
    BlockIndex rest = take_bytes(size * blocks_per_chunk_, list);
    if (rest == kNone) return false;
    for (int i = 0; i < blocks_per_chunk_; ++i) {
        const BlockIndex block = rest;
        if (i + 1 < blocks_per_chunk_) rest = split(block, size);
        put_in_set(block, kOther + static_cast<std::uint32_t>(bin));
        blocks_of_bin(bin, list).push_back(block);
    }
    return true;
}

void Binning::retire(BlockIndex b, StreamId stream) {
    if (block(b).set < kOther) return Pool::retire(b, stream);
    device_.record(stream);
    blocks_of_bin(block(b).set - kOther, list_of(stream)).push_back(b);
}

}  // namespace

PolicyInfo rmm_binning_policy() {
    PolicyInfo info;
    info.name = "rmm-binning";
    info.summary =
        "RAPIDS' bins over its pool: requests up to 4 MiB come from blocks of fixed sizes, powers of two.\n"
        "No search for small requests; bins never share memory, and each begins with a chunk of 128 blocks.";
    info.reference = "rapidsai/rmm binning_memory_resource, fixed_size_memory_resource (26.10)";
    info.parameters = {
        {"min_size_exponent", "count", "18", "the smallest bin holds blocks of 2 to this power bytes"},
        {"max_size_exponent", "count", "22", "the largest; what does not fit it comes from the pool"},
        {"blocks_per_chunk", "count", "128", "a bin gets that many blocks at once"},
    };
    for (const PolicyParameter& parameter : rmm::pool_parameters()) info.parameters.push_back(parameter);
    info.own_settings = rmm::own_settings;
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("rmm-binning", known, given);
        const auto least = static_cast<int>(read.count("min_size_exponent", 8, 40));
        const auto most = static_cast<int>(read.count("max_size_exponent", 8, 40));
        if (most < least) read.refuse("max_size_exponent", "at least min_size_exponent");
        return std::make_unique<Binning>(rmm::read_pool_config(read), least, most,
            static_cast<int>(read.count("blocks_per_chunk", 1, 100'000)), context.device);
    };
    return info;
}

}  // namespace fragsim
