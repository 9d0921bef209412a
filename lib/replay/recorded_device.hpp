// A device that answers as the recorded one did: with the recorded address, or with a refusal where the recording shows
// that the driver refused. It checks that it is asked what the recorded allocator asked, in the same order.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lib/device/device.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

class RecordedDevice final : public Device {
public:
    // Called for each difference: what the recording says, what happened.
    using Report = std::function<void(const std::string& expected, const std::string& actual)>;

    // `events` must outlive this.
    RecordedDevice(std::span<const SegmentEvent> events, Report report) : events_(events), report_(std::move(report)) {}

    // Succeeds if the next recorded call of the present event is an allocation of this size.
    std::optional<Address> malloc(Bytes bytes, StreamId stream) override;
    void free(Address address, Bytes bytes, StreamId stream) override;
    // A reservation is not recorded; the first range mapped in it is, and stands at its beginning.
    Address reserve(Bytes bytes, StreamId stream) override;
    void unreserve(Address, Bytes, StreamId) override {}
    bool map(Address address, Bytes bytes, Bytes page, StreamId stream) override;
    void unmap(Address address, Bytes bytes, Bytes page, StreamId stream) override;

    // Calls recorded before event `event` took effect are due from now on.
    void begin_event(std::uint32_t event) { event_ = event; }
    // The present event is over: what it should have asked for and did not is reported and passed over.
    void end_event();

    // Does event `event` begin by giving memory back?
    bool next_releases(std::uint32_t event) const {
        if (next_ >= events_.size() || events_[next_].before_event != event) return false;
        return events_[next_].kind == SegmentEventKind::free || events_[next_].kind == SegmentEventKind::unmap;
    }
    std::int64_t exact() const { return exact_; }  // calls that were as recorded

private:
    // Takes the next recorded call if it is due and is this one.
    bool take(SegmentEventKind kind, Address address, Bytes bytes);
    bool due() const { return next_ < events_.size() && events_[next_].before_event <= event_; }

    std::span<const SegmentEvent> events_;
    Report report_;
    std::size_t next_ = 0;
    std::uint32_t event_ = 0;
    std::int64_t exact_ = 0;
};

}  // namespace fragsim
