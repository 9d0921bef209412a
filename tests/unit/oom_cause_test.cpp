// Why a request failed: every cause of spec/policies.md, section 11.6, on a picture drawn for it.
#include <set>

#include "lib/device/host_device.hpp"
#include "lib/metrics/oom.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_policy.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

constexpr Bytes kCapacity = 100 * kMiB;

// A policy's memory, block by block; reserved and active bytes follow.
class Memory {
public:
    struct Block {
        char state;  // A in use, P pending, F free
        Bytes size;
    };

    Memory& small_segment(std::vector<Block> blocks) {
        segment(std::move(blocks));
        picture_.segments.back().small = true;
        return *this;
    }
    Memory& segment(std::vector<Block> blocks, StreamId stream = {0}) {
        const auto first = static_cast<std::uint32_t>(picture_.blocks.size());
        const Address start = next_;
        for (const Block& block : blocks) {
            const BlockState state = block.state == 'F'   ? BlockState::inactive
                                     : block.state == 'P' ? BlockState::active_pending_free
                                                          : BlockState::active_allocated;
            picture_.blocks.push_back({next_, block.size, block.size, {}, state});
            next_ += static_cast<Address>(block.size);
            if (state != BlockState::inactive) active_ += block.size;
            if (state == BlockState::active_allocated) allocated_ += block.size;
        }
        const auto size = static_cast<Bytes>(next_ - start);
        picture_.segments.push_back(
            {start, size, stream, 0, false, false, first, static_cast<std::uint32_t>(blocks.size())});
        reserved_ += size;
        return *this;
    }
    // Less was asked for than is in use.
    Memory& requested(Bytes bytes) {
        requested_ = bytes;
        return *this;
    }

    Oom refuse(Bytes bytes, std::optional<Bytes> capacity = kCapacity, StreamId stream = {0}) const {
        HostDevice device({});
        FakePolicy policy(device);
        set(policy.said.reserved_bytes.all, reserved_);
        set(policy.said.active_bytes.all, active_);
        set(policy.said.allocated_bytes.all, allocated_);
        set(policy.said.requested_bytes.all, requested_.value_or(active_));
        policy.draw = [this](MemoryPicture& picture) { picture = picture_; };
        policy.keeps = [](const SegmentPicture& segment, const Request& request) {
            if (segment.stream != request.stream) return Barrier::other_stream;
            return segment.small == (request.bytes <= kMiB) ? Barrier::none : Barrier::other_size_class;
        };
        return attribute_oom(policy, 7, {bytes, stream}, {capacity, {}});
    }

private:
    MemoryPicture picture_;
    Address next_ = 0x7f0000000000;
    Bytes reserved_ = 0, active_ = 0, allocated_ = 0;
    std::optional<Bytes> requested_;
};

}  // namespace

TEST_CASE("a request refused while the device had room met a limit of the policy", "[unit][oom]") {
    CHECK(Memory().segment({{'A', 40 * kMiB}}).refuse(60 * kMiB).cause == OomCause::policy_limit);
    CHECK(Memory().segment({{'A', 40 * kMiB}}).refuse(60 * kMiB, std::nullopt).cause == OomCause::policy_limit);
}

TEST_CASE("requested bytes beyond the capacity no allocator could serve", "[unit][oom]") {
    const Oom oom = Memory().segment({{'A', 60 * kMiB}}).segment({{'F', 40 * kMiB}}).refuse(40 * kMiB + 1);
    CHECK(oom.cause == OomCause::capacity);
    CHECK(oom.op == 7);
    CHECK(oom.requested == 40 * kMiB + 1);
    CHECK(oom.rounded == 40 * kMiB + 512);
    CHECK(oom.reserved == 100 * kMiB);
    CHECK(oom.allocated == 60 * kMiB);
    CHECK(oom.largest_free == 40 * kMiB);
    CHECK(oom.device_free == 0);
    CHECK(oom.shortfall == 512);
    CHECK_FALSE(oom.fits_if_compacted);
}

TEST_CASE("rounding alone can exceed the capacity", "[unit][oom]") {
    CHECK(Memory().segment({{'A', 99 * kMiB}, {'F', kMiB}}).requested(50 * kMiB).refuse(2 * kMiB).cause ==
          OomCause::internal);
}

TEST_CASE("wholly free segments that were not given back would have been enough", "[unit][oom]") {
    const Oom oom =
        Memory().segment({{'A', 40 * kMiB}}).segment({{'F', 30 * kMiB}}).segment({{'F', 30 * kMiB}}).refuse(50 * kMiB);
    CHECK(oom.cause == OomCause::unreleased);
    CHECK(oom.releasable == 60 * kMiB);
    CHECK(oom.fits_if_compacted);
    CHECK(oom.shortfall == 20 * kMiB);
}

TEST_CASE("a free range that fits now came from frees that completed too late", "[unit][oom]") {
    CHECK(Memory().segment({{'A', 40 * kMiB}, {'F', 60 * kMiB}}).refuse(50 * kMiB).cause == OomCause::stream_pending);
}

TEST_CASE("frees that still wait for a stream would make room once they complete", "[unit][oom]") {
    const Oom oom = Memory().segment({{'A', 40 * kMiB}}).segment({{'P', 60 * kMiB}}).refuse(50 * kMiB);
    CHECK(oom.cause == OomCause::stream_pending);  // pending bytes are not requested any more: the capacity would do
}

TEST_CASE("free pages that lie apart could be mapped together", "[unit][oom]") {
    const Memory memory =
        Memory().segment({{'A', 20 * kMiB}, {'F', 30 * kMiB}}).segment({{'A', 20 * kMiB}, {'F', 30 * kMiB}});
    CHECK(memory.refuse(50 * kMiB).cause == OomCause::remappable);
    // A range of another stream does not fit, however large, but its pages count.
    CHECK(Memory().segment({{'A', 40 * kMiB}, {'F', 60 * kMiB}}, {1}).refuse(50 * kMiB).cause == OomCause::remappable);
}

TEST_CASE("free pieces smaller than a page need live data to move", "[unit][oom]") {
    Memory memory;
    for (int i = 0; i < 50; ++i) memory.segment({{'A', kMiB}, {'F', kMiB}});
    const Oom oom = memory.refuse(10 * kMiB);
    CHECK(oom.cause == OomCause::compaction);
    CHECK(oom.free_total == 50 * kMiB);
    CHECK(oom.largest_free == kMiB);
    CHECK(oom.fits_if_compacted);
}

TEST_CASE("room on the device that is too small alone counts beside what is cached", "[unit][oom]") {
    // 20 MiB not reserved and 30 MiB cached.
    const Oom oom = Memory().segment({{'A', 50 * kMiB}}).segment({{'F', 30 * kMiB}}).refuse(45 * kMiB);
    CHECK(oom.device_free == 20 * kMiB);
    CHECK(oom.cause == OomCause::unreleased);
}

TEST_CASE("a free range for blocks of other sizes is no use, and a cause of its own", "[unit][oom]") {
    const Oom oom = Memory().segment({{'A', 40 * kMiB}, {'F', 60 * kMiB}}).refuse(kMiB);
    CHECK(oom.cause == OomCause::other_size_class);
    CHECK(oom.largest_free == 0);
    CHECK(oom.free_total == 60 * kMiB);
    const Memory large_wanted =
        Memory().segment({{'A', 98 * kMiB}}).small_segment({{'A', kMiB / 2}, {'F', 3 * kMiB / 2}});
    CHECK(large_wanted.refuse(kMiB + 1).cause == OomCause::other_size_class);
    CHECK(large_wanted.refuse(kMiB + 1).largest_free == 0);
    CHECK(large_wanted.refuse(kMiB).largest_free == 3 * kMiB / 2);
}

TEST_CASE("room on the device below a page is not called memory that was not given back", "[unit][oom]") {
    const Oom oom = Memory().segment({{'A', 98 * kMiB}, {'F', kMiB}}).refuse(kMiB);
    CHECK(oom.device_free == kMiB);
    CHECK(oom.releasable == 0);
    CHECK(oom.cause == OomCause::other_size_class);
}

TEST_CASE("every cause has a name of its own", "[unit][oom]") {
    std::set<std::string> names;
    for (int cause = 0; cause <= static_cast<int>(OomCause::other); ++cause)
        names.insert(name(static_cast<OomCause>(cause)));
    CHECK(names.size() == static_cast<std::size_t>(OomCause::other) + 1);
    CHECK_FALSE(names.contains(""));
}
