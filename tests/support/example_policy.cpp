// Power-of-two bins: a freed block waits in the bin of its size for the next request that rounds up to it.
#include <bit>
#include <map>

#include "lib/policy/block_policy.hpp"
#include "lib/policy/parameters.hpp"

namespace fragsim {
namespace {

class PowerBins final : public BlockPolicy {
public:
    PowerBins(Bytes smallest, Device& device) : BlockPolicy(device, StreamOrder::inserted), smallest_(smallest) {}

    Bytes largest_free() const override {
        for (auto bin = bins_.rbegin(); bin != bins_.rend(); ++bin)
            if (!bin->second.empty()) return bin->first;
        return 0;
    }
    void free_sizes(std::vector<Bytes>& out) const override {
        for (const auto& [size, blocks] : bins_) out.insert(out.end(), blocks.size(), size);
    }
    void empty_cache() override {
        for (auto& [size, blocks] : bins_) {
            for (const BlockIndex b : blocks) {
                device_.free(block(b).address, size, segment_of(b).stream);
                remove_segment(b);
            }
            blocks.clear();
        }
    }

private:
    // A block for the request, out of every bin; kNone: out of memory.
    BlockIndex take(const Request& request) override {
        const auto size =
            static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(std::max(request.bytes, smallest_))));
        std::vector<BlockIndex>& bin = bins_[size];
        if (!bin.empty()) {
            const BlockIndex newest = bin.back();
            bin.pop_back();
            return newest;
        }
        const std::optional<Address> address = device_.malloc(size, request.stream);
        return address ? add_segment(*address, size, request.stream) : kNone;
    }
    // The block may be used again.
    void retire(BlockIndex b, StreamId) override { bins_[block(b).size].push_back(b); }

    Bytes smallest_;
    std::map<Bytes, std::vector<BlockIndex>> bins_;
};

}  // namespace

PolicyInfo power_bins_policy() {
    PolicyInfo info;
    info.name = "power-bins";
    info.summary = "powers of two: a freed block serves the next request of its size.\nNothing is cut, nothing joins.";
    info.reference = "folklore";
    info.parameters = {{"smallest_bytes", "bytes", "512", "smallest block; a power of two of at least 512"}};
    info.make = [known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const ParameterReader read("power-bins", known, given);
        return std::make_unique<PowerBins>(read.power_of_two("smallest_bytes", 512), context.device);
    };
    return info;
}

}  // namespace fragsim
