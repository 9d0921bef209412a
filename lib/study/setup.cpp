#include "lib/study/setup.hpp"

#include "lib/replay/lifespans.hpp"
#include "lib/replay/recorded_address_space.hpp"

namespace fragsim {

Hardware::Hardware(const Trace& trace, const PolicySpec& spec, const RunOptions& options) {
    const std::optional<Bytes> bound = spec.info->device_bound(options.limits);
    if (options.device.kind == DeviceChoice::Kind::host) {
        host_.emplace(HostDevice::Config{
            bound, options.address_space ? *options.address_space : fresh_address_space(trace).start});
    } else {
        const bool ballast = options.device.ballast;
        cuda_.emplace(CudaDevice::Config{
            options.device.ordinal, ballast ? std::nullopt : bound, ballast ? options.limits.capacity : std::nullopt});
    }
}

namespace {

// With a ballast nobody knows the capacity before the card refuses.
Limits known_limits(const RunOptions& options) {
    Limits limits = options.limits;
    if (options.device.ballast) limits.capacity.reset();
    return limits;
}

// What does not fit cannot be taken over: the live buffers are allocated one by one instead.
bool fits(const MemoryPicture& start, std::optional<Bytes> capacity) {
    Bytes reserved = 0;
    for (const SegmentPicture& segment : start.segments) reserved += segment.size;
    return !capacity || reserved <= *capacity;
}

}  // namespace

Setup::Setup(const Trace& trace, const PolicySpec& spec, const RunOptions& options, Hardware& hardware)
    : hardware_(hardware),
      device_(hardware.device(), *options.costs,
          options.repetitions > 0 ? LoggedDevice::Timing::measured : LoggedDevice::Timing::modelled),
      lifespans_(spec.info->offline ? lifespans_of(trace) : std::vector<Lifespan>{}),
      policy_(spec.info->make(spec.settings(),
          {device_, known_limits(options), trace.pools, &lifespans_})),
      restored_(restore_start(trace, *policy_, options.frees,
          options.adopt_start && hardware.host() && fits(trace.initial, spec.info->bounds(options.limits).reserved))) {
    if (!restored_.adopted || !hardware.host()) return;
    std::vector<CudaMallocAddresses::Range> segments;
    for (const SegmentPicture& segment : trace.initial.segments)
        if (segment.expandable)
            hardware.host()->adopt_mapped(segment.address + static_cast<Address>(segment.size), segment.size);
        else
            segments.push_back({segment.address, segment.size});
    hardware.host()->adopt(std::move(segments));
}

Setup::~Setup() {
    policy_.reset();
    if (hardware_.cuda()) hardware_.cuda()->give_back_all();
}

std::vector<std::uint32_t> recorded_oom_events(const Trace& trace) {
    std::vector<std::uint32_t> events;
    if (trace.ooms.empty()) return events;
    for (std::uint32_t i = 0; i < trace.events.size() && events.size() < Result::kMaxRecordedOoms; ++i)
        if (trace.events[i].kind() == EventKind::oom) events.push_back(i);
    return events;
}

RecordedOomAnswer ask_recorded_oom(const Trace& trace, const PolicySpec& spec, const RunOptions& options,
    std::uint32_t event, const std::function<void(Setup& setup, std::uint32_t op)>& look) {
    const RecordedOom& oom = trace.ooms[trace.events[event].subject];
    Hardware hardware(trace, spec, options);
    Setup setup(trace, spec, options, hardware);
    const ReplayOutcome before = replay(trace, setup.policy(), setup.device(), {},
        {.frees = options.frees, .end_event = event, .left_out = setup.restored().left_out});
    const BufferId extra{static_cast<std::uint32_t>(trace.buffers.size())};
    const bool served = setup.policy().allocate(extra, {oom.requested, oom.stream}).has_value();
    if (look) look(setup, before.ops);
    return {before.ops, oom.requested, served};
}

}  // namespace fragsim
