// A policy that says and does what a test wants: by itself it is honest, every part of it can be replaced.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "lib/policy/policy.hpp"

namespace fragsim::test {

inline void set(Stat& stat, Bytes value) {
    if (value > stat.current)
        stat.increase(value - stat.current);
    else
        stat.decrease(stat.current - value);
}

// Two segments of 2 MiB, got at the first allocation; buffer i gets 4 KiB at 4 KiB * i of the first, the second stays
// empty.
class FakePolicy final : public Policy {
public:
    static constexpr Bytes kSegment = 2 * kMiB, kBlock = 4 * kKiB;

    explicit FakePolicy(Device& device) : device_(device) {}

    // What a test may replace: each runs after the policy did its honest work.
    std::function<void(FakePolicy&, BufferId, Placement&)> after_allocate;  // may move the placement
    std::function<void(FakePolicy&, BufferId)> after_free;
    void (*lie)(AllocatorStats&) = nullptr;    // about the statistics
    std::function<void(MemoryPicture&)> draw;  // the picture
    std::function<Barrier(const SegmentPicture&, const Request&)> keeps;
    AllocatorStats said;

    std::optional<Placement> allocate(BufferId buffer, const Request& request) override {
        for (Address& segment : segments_)
            if (segment == 0) {
                segment = *device_.malloc(kSegment, {0});
                set(said.reserved_bytes.all, said.reserved_bytes.all.current + kSegment);
            }
        Placement placement{segments_[0] + static_cast<Address>(buffer.value) * kBlock, kBlock};
        if (after_allocate) after_allocate(*this, buffer, placement);
        live_[buffer.value] = {placement.allocated, request.bytes, false};
        count();
        return placement;
    }
    void free(BufferId buffer) override {
        live_.erase(buffer.value);
        count();
        if (after_free) after_free(*this, buffer);
    }
    void free_requested(BufferId buffer) override {
        live_.at(buffer.value).pending = true;
        count();
    }
    void free_completed(BufferId buffer) override { free(buffer); }

    const AllocatorStats& stats() const override { return said; }
    Bytes largest_free() const override { return kSegment; }
    void free_sizes(std::vector<Bytes>& out) const override { out.push_back(kSegment); }
    MemoryPicture picture() const override;
    Barrier barrier(const SegmentPicture& segment, const Request& request) const override {
        return keeps ? keeps(segment, request) : Barrier::none;
    }

    void release(std::size_t segment) {
        device_.free(segments_[segment], kSegment, {0});
        set(said.reserved_bytes.all, said.reserved_bytes.all.current - kSegment);
        segments_[segment] = 0;
    }
    Address segment(std::size_t i) const { return segments_[i]; }

private:
    struct Live {
        Bytes allocated, requested;
        bool pending;
    };

    void count() {
        Bytes allocated = 0, active = 0, requested = 0;
        for (const auto& [buffer, block] : live_) {
            active += block.allocated;
            requested += block.requested;
            if (!block.pending) allocated += block.allocated;
        }
        set(said.allocated_bytes.all, allocated);
        set(said.active_bytes.all, active);
        set(said.requested_bytes.all, requested);
        if (lie) lie(said);
    }

    Device& device_;
    Address segments_[2]{};
    std::map<std::uint32_t, Live> live_;
};

inline MemoryPicture FakePolicy::picture() const {
    MemoryPicture picture;
    for (const Address start : segments_) {
        if (start == 0) continue;
        const auto first = static_cast<std::uint32_t>(picture.blocks.size());
        Address next = start;
        const auto free_up_to = [&](Address end) {
            if (end > next)
                picture.blocks.push_back({next, static_cast<Bytes>(end - next), 0, {}, BlockState::inactive});
            next = end;
        };
        if (start == segments_[0])
            for (const auto& [buffer, block] : live_) {
                free_up_to(start + static_cast<Address>(buffer) * kBlock);
                picture.blocks.push_back({next, kBlock, block.requested, {buffer},
                    block.pending ? BlockState::active_pending_free : BlockState::active_allocated});
                next += kBlock;
            }
        free_up_to(start + kSegment);
        picture.segments.push_back(
            {start, kSegment, {0}, 0, true, false, first, static_cast<std::uint32_t>(picture.blocks.size()) - first});
    }
    if (draw) draw(picture);
    return picture;
}

}  // namespace fragsim::test
