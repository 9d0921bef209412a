#include "lib/replay/recorded_device.hpp"

#include <fmt/format.h>

namespace fragsim {
namespace {

std::string describe(SegmentEventKind kind, Address address, Bytes bytes) {
    static constexpr const char* kNames[] = {"segment_alloc", "segment_free", "segment_map", "segment_unmap"};
    return fmt::format("{} of {} bytes at {:#x}", kNames[static_cast<int>(kind)], bytes, address);
}

std::string describe(const SegmentEvent& event) { return describe(event.kind, event.address, event.bytes); }

}  // namespace

std::optional<Address> RecordedDevice::malloc(Bytes bytes, StreamId stream) {
    if (!due()) return {};
    const SegmentEvent& expected = events_[next_];
    if (expected.kind != SegmentEventKind::alloc || expected.bytes != bytes || expected.stream != stream) return {};
    ++next_;
    ++exact_;
    return expected.address;
}

bool RecordedDevice::take(SegmentEventKind kind, Address address, Bytes bytes) {
    if (!due() || events_[next_].kind != kind || events_[next_].address != address || events_[next_].bytes != bytes)
        return false;
    ++next_;
    ++exact_;
    return true;
}

void RecordedDevice::free(Address address, Bytes bytes, StreamId) {
    if (!take(SegmentEventKind::free, address, bytes))
        report_(due() ? describe(events_[next_]) : "no driver call", describe(SegmentEventKind::free, address, bytes));
}

Address RecordedDevice::reserve(Bytes, StreamId) {
    // The policy may reserve before it finds out that it must release something first.
    for (std::size_t i = next_; i < events_.size() && events_[i].before_event <= event_; ++i)
        if (events_[i].kind == SegmentEventKind::map) return events_[i].address;
    return Address{1} << 56;  // nothing was mapped; far from everything recorded
}

bool RecordedDevice::map(Address address, Bytes bytes, Bytes, StreamId) {
    return take(SegmentEventKind::map, address, bytes);
}

void RecordedDevice::unmap(Address address, Bytes bytes, Bytes, StreamId) {
    if (!take(SegmentEventKind::unmap, address, bytes))
        report_(due() ? describe(events_[next_]) : "no driver call", describe(SegmentEventKind::unmap, address, bytes));
}

void RecordedDevice::end_event() {
    for (; due(); ++next_) report_(describe(events_[next_]), "nothing");
}

}  // namespace fragsim
