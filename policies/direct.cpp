// Every allocation is a driver call of its own: no caching at all.
//
// Rationale: the baseline that caching is measured against; nothing is kept, so nothing is fragmented, and every
// operation pays the driver's price.
#include <algorithm>

#include "lib/policy/accounting_policy.hpp"

namespace fragsim {
namespace {

class Direct final : public AccountingPolicy {
public:
    explicit Direct(Device& device) : AccountingPolicy(device, StreamOrder::own) {}

    Bytes largest_free() const override { return 0; }
    void free_sizes(std::vector<Bytes>&) const override {}
    MemoryPicture picture() const override;

private:
    std::optional<Place> place(const Request& request) override {
        const Bytes bytes = round_up(request.bytes, alignment());
        const std::optional<Address> address = device_.malloc(bytes, request.stream);
        if (!address) return {};
        add_reserved(bytes, 1);
        return Place{*address, bytes, 0};
    }
    // cudaFree waits for the whole device, so no stream can still use the memory.
    void give_back(const Place& place, StreamId stream) override {
        device_.free(place.address, place.size, stream);
        remove_reserved(place.size, 1);
    }
};

MemoryPicture Direct::picture() const {
    MemoryPicture picture;
    for (std::uint32_t i = 0; i < buffers().size(); ++i) {
        const Live& live = buffers()[i];
        if (live.state == BlockState::inactive) continue;
        picture.segments.push_back({live.place.address, live.place.size, live.stream, 0, false, false, 0, 1});
        picture.blocks.push_back({live.place.address, live.place.size, live.requested, {i}, live.state});
    }
    std::sort(picture.segments.begin(), picture.segments.end(),
        [](const SegmentPicture& a, const SegmentPicture& b) { return a.address < b.address; });
    std::sort(picture.blocks.begin(), picture.blocks.end(),
        [](const BlockPicture& a, const BlockPicture& b) { return a.address < b.address; });
    for (std::uint32_t i = 0; i < picture.segments.size(); ++i) picture.segments[i].first_block = i;
    return picture;
}

}  // namespace

PolicyInfo direct_policy() {
    PolicyInfo info;
    info.name = "direct";
    info.summary =
        "one driver call an allocation, the baseline that caching is measured against.\n"
        "Nothing is kept, nothing is cut; every operation pays the driver's price.";
    info.reference = "cudaMalloc and cudaFree";
    info.remaps = true;
    info.make = [](const Parameters&, const PolicyContext& context) {
        return std::make_unique<Direct>(context.device);
    };
    return info;
}

}  // namespace fragsim
