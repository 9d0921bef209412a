#include "lib/replay/verify.hpp"

#include <fmt/format.h>

#include <vector>

#include "lib/replay/recorded_device.hpp"
#include "lib/replay/replay.hpp"

namespace fragsim {
namespace {

class Verifier {
public:
    Verifier(const Trace& trace, const std::function<std::unique_ptr<Policy>(Device&)>& make_policy)
        : trace_(trace),
          device_(trace.segment_events, [this](const std::string& e, const std::string& a) { diverge(e, a); }),
          policy_(make_policy(device_)) {}

    VerifyResult run();

private:
    void diverge(const std::string& expected, const std::string& actual) {
        if (!result_.first_divergence) result_.first_divergence = Divergence{event_, expected, actual};
    }
    void apply(Event event);
    void allocate(BufferId buffer);
    void allocate_in_vain(std::uint32_t oom);
    bool completed_by_recovery(std::uint32_t event) const;
    void compare_end(const MemoryPicture& expected);

    const Trace& trace_;
    RecordedDevice device_;
    std::unique_ptr<Policy> policy_;
    std::vector<bool> lost_ = std::vector<bool>(trace_.buffers.size());  // allocated in the recording, not here
    std::uint32_t event_ = 0;
    VerifyResult result_;
};

VerifyResult Verifier::run() {
    result_.device = trace_.device;
    result_.completeness = trace_.completeness;
    result_.segment_events = static_cast<std::int64_t>(trace_.segment_events.size());
    restore_start(trace_, *policy_);
    std::vector<Event> completed;  // by the recovery of the allocation that follows them
    for (event_ = 0; event_ < trace_.events.size(); ++event_) {
        const Event event = trace_.events[event_];
        if (event.kind() == EventKind::free_completed && completed_by_recovery(event_)) {
            completed.push_back(event);
            continue;
        }
        device_.begin_event(event_);
        apply(event);
        device_.end_event();
        if (event.kind() != EventKind::free_completed) {
            for (const Event late : completed) apply(late);
            completed.clear();
        }
    }
    device_.begin_event(event_);
    device_.end_event();
    result_.segment_events_exact = device_.exact();
    if (trace_.final) compare_end(*trace_.final);
    return result_;
}

void Verifier::apply(Event event) {
    switch (event.kind()) {
        case EventKind::alloc: allocate(event.buffer()); break;
        case EventKind::free:
            if (!lost_[event.subject]) policy_->free(event.buffer());
            break;
        case EventKind::free_requested:
            if (!lost_[event.subject]) policy_->free_requested(event.buffer());
            break;
        case EventKind::free_completed:
            if (!lost_[event.subject]) policy_->free_completed(event.buffer());
            break;
        case EventKind::empty_cache: policy_->empty_cache(); break;
        case EventKind::release_pool: policy_->release_pool(static_cast<std::uint16_t>(event.subject)); break;
        case EventKind::empty_pool: policy_->empty_pool(static_cast<std::uint16_t>(event.subject)); break;
        case EventKind::oom: allocate_in_vain(event.subject); break;
        case EventKind::record_stream:
        case EventKind::synchronize:
        case EventKind::marker: break;
    }
}

void Verifier::allocate(BufferId id) {
    const Buffer& buffer = trace_.buffers[id.value];
    const std::optional<Placement> placement = policy_->allocate(id, request_of(buffer));
    ++result_.allocs;
    if (placement && placement->address == buffer.recorded_address) {
        ++result_.allocs_exact;
        return;
    }
    lost_[id.value] = !placement;
    diverge(fmt::format("{} bytes at {:#x}", buffer.requested, buffer.recorded_address),
        placement ? fmt::format("at {:#x}", placement->address) : "out of memory");
}

// A request that failed when recorded must fail here as well, with the same driver calls on the way.
void Verifier::allocate_in_vain(std::uint32_t index) {
    const RecordedOom& oom = trace_.ooms[index];
    const BufferId id{static_cast<std::uint32_t>(trace_.buffers.size()) + index};
    ++result_.ooms;
    if (const auto placement = policy_->allocate(id, {oom.requested, oom.stream})) {
        diverge(fmt::format("out of memory for {} bytes", oom.requested), fmt::format("at {:#x}", placement->address));
        policy_->free(id);
    } else {
        ++result_.ooms_exact;
    }
}

// Completions right before an allocation that had to release cached segments were seen by that allocation when it
// waited for all streams: after it had searched its cache, not before (spec/pytorch-caching-allocator.md, 15.2).
bool Verifier::completed_by_recovery(std::uint32_t event) const {
    std::uint32_t next = event;
    while (next < trace_.events.size() && trace_.events[next].kind() == EventKind::free_completed) ++next;
    if (next == trace_.events.size()) return false;
    const EventKind kind = trace_.events[next].kind();
    return (kind == EventKind::alloc || kind == EventKind::oom) && device_.next_releases(next);
}

void Verifier::compare_end(const MemoryPicture& expected) {
    const MemoryPicture actual = policy_->picture();
    result_.end_exact = false;
    if (actual.segments.size() != expected.segments.size() || actual.blocks.size() != expected.blocks.size())
        return diverge(
            fmt::format("{} segments with {} blocks at the end", expected.segments.size(), expected.blocks.size()),
            fmt::format("{} segments with {} blocks", actual.segments.size(), actual.blocks.size()));
    for (std::size_t i = 0; i < expected.segments.size(); ++i)
        if (actual.segments[i].address != expected.segments[i].address ||
            actual.segments[i].size != expected.segments[i].size)
            return diverge(fmt::format("segment at {:#x} at the end", expected.segments[i].address),
                fmt::format("segment at {:#x}", actual.segments[i].address));
    for (std::size_t i = 0; i < expected.blocks.size(); ++i) {
        const BlockPicture &e = expected.blocks[i], &a = actual.blocks[i];
        if (a.address != e.address || a.size != e.size || a.state != e.state)
            return diverge(fmt::format("block of {} bytes at {:#x} at the end", e.size, e.address),
                fmt::format(
                    "block of {} bytes at {:#x}{}", a.size, a.address, a.state != e.state ? " in another state" : ""));
    }
    result_.end_exact = true;
}

}  // namespace

VerifyResult verify(const Trace& trace, const std::function<std::unique_ptr<Policy>(Device&)>& make_policy) {
    return Verifier(trace, make_policy).run();
}

}  // namespace fragsim
