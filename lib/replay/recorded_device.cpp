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

void RecordedDevice::free(Address address, Bytes bytes, StreamId) {
    if (due() && events_[next_].kind == SegmentEventKind::free && events_[next_].address == address && events_[next_].bytes == bytes) {
        ++next_;
        ++exact_;
        return;
    }
    report_(due() ? describe(events_[next_]) : "no driver call", describe(SegmentEventKind::free, address, bytes));
}

void RecordedDevice::end_event() {
    for (; due(); ++next_) report_(describe(events_[next_]), "nothing");
}

}  // namespace fragsim
