// The model of cudaMalloc's addresses: whatever is asked, it hands out ranges that do not overlap and takes them back.
#include <rapidcheck.h>

#include <map>

#include "lib/device/cuda_malloc_addresses.hpp"
#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

struct Call {
    bool free;
    std::uint32_t pick;
    Bytes size;
};
std::ostream& operator<<(std::ostream& out, const Call& call) {
    return call.free ? out << "free #" << call.pick : out << "malloc " << call.size;
}

rc::Gen<Call> calls() {
    const auto size = rc::gen::weightedOneOf<Bytes>({{3, rc::gen::inRange<Bytes>(1, 2 * kMiB)},
        {2, rc::gen::element<Bytes>(1, 512, kMiB, 2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1, 32 * kMiB)},
        {2, rc::gen::inRange<Bytes>(2 * kMiB, 100 * kMiB)}});
    return rc::gen::build<Call>(rc::gen::set(&Call::free), rc::gen::set(&Call::pick, rc::gen::inRange(0u, 64u)),
        rc::gen::set(&Call::size, size));
}

// Live ranges with what they were asked for.
class Ranges {
public:
    void add(Address start, Bytes size) {
        const auto end = start + static_cast<Address>(size);
        const auto above = live_.lower_bound(start);
        RC_ASSERT((above == live_.end() || above->first >= end));
        RC_ASSERT((above == live_.begin() ||
                   std::prev(above)->first + static_cast<Address>(std::prev(above)->second) <= start));
        RC_ASSERT(start % (size < 2 * kMiB ? 512 : 2 * kMiB) == 0);
        live_[start] = size;
    }
    std::pair<Address, Bytes> take(std::uint32_t pick) {
        const auto chosen = std::next(live_.begin(), pick % static_cast<std::ptrdiff_t>(live_.size()));
        const auto range = *chosen;
        live_.erase(chosen);
        return range;
    }
    bool empty() const { return live_.empty(); }

private:
    std::map<Address, Bytes> live_;
};

}  // namespace

TEST_CASE(
    "the address model never hands out ranges that overlap, and counts pages as they are taken", "[property][device]") {
    rc::detail::TestParams params;
    params.seed = 1;
    params.maxSuccess = 300;
    params.maxSize = 200;
    const auto result = rc::detail::checkTestable(
        [] {
            const bool streams_created = *rc::gen::arbitrary<bool>();
            const auto start =
                streams_created ? CudaMallocAddresses::Start::extra_streams : CudaMallocAddresses::Start::fresh;
            CudaMallocAddresses model(start), twin(start);
            Ranges live;
            for (const Call& call : *rc::gen::container<std::vector<Call>>(calls())) {
                if (call.free && !live.empty()) {
                    const auto [address, size] = live.take(call.pick);
                    model.free(address, size);
                    twin.free(address, size);
                } else {
                    const Bytes cost = model.physical_cost(call.size), before = model.physical_bytes();
                    const Address address = model.malloc(call.size);
                    RC_ASSERT(model.physical_bytes() == before + cost);
                    RC_ASSERT(twin.malloc(call.size) == address);
                    live.add(address, call.size);
                }
            }
            while (!live.empty()) {
                const auto [address, size] = live.take(0);
                model.free(address, size);
            }
            RC_ASSERT(model.physical_bytes() == 0);
            // Nothing is left behind: from here on it is as good as new.
            CudaMallocAddresses fresh(start);
            RC_ASSERT(model.malloc(30 * kMiB) == fresh.malloc(30 * kMiB));
        },
        rc::detail::TestMetadata{}, params);
    std::ostringstream said;
    rc::detail::printResultMessage(result, said);
    INFO(said.str());
    CHECK(result.is<rc::detail::SuccessResult>());
}
