// A policy on a host device, with everything needed to drive it by a script and to look at it afterwards.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/device/host_device.hpp"
#include "lib/device/logged_device.hpp"
#include "lib/replay/auditor.hpp"
#include "lib/replay/replay.hpp"

namespace fragsim::test {

using MakePolicy = std::function<std::unique_ptr<Policy>(const PolicyContext&)>;

class Playback final : private ReplayObserver {
public:
    struct Options {
        Limits limits = {};                       // told to the policy
        std::optional<Bytes> device_memory = {};  // the device refuses beyond it
        std::optional<Bytes> audited = {};        // the auditor lets nobody reserve more
        OnOom on_oom = OnOom::skip;
    };
    // A policy of this kind within these limits, as a run has it.
    static Options within(const PolicyInfo& info, const Limits& limits) {
        return {limits, info.device_bound(limits), info.bounds(limits).reserved};
    }
    Playback(Trace played, const MakePolicy& make) : Playback(std::move(played), make, Options{}) {}
    Playback(Trace played, const MakePolicy& make, const Options& options);

    // The whole trace, the auditor watching.
    void run();

    Trace trace;
    HostDevice host;
    LoggedDevice device;
    std::vector<Lifespan> lifespans;
    std::unique_ptr<Policy> policy;
    Auditor auditor;
    ReplayOutcome outcome;
    std::vector<std::optional<Placement>> placements;  // of the allocations, in order

private:
    void observe(const Step& step) override {
        if (step.kind == EventKind::alloc) placements.push_back(step.placement);
    }
    Options options_;
};

// "NAME[:key=value,...]" of the policies there are.
MakePolicy policy(const std::string& spec);

// Driver calls as "S0:20M S1:2M -S0": Sn is the n-th segment got, MiB where they are whole.
std::string describe(const std::vector<DriverCall>& calls);
// Memory as the specification writes it: "S0[512A 2096640F]"; A in use, F free, P waiting for a stream. Segments are
// named as in describe() and come in that order.
std::string describe(const MemoryPicture& picture, const std::vector<DriverCall>& calls);
std::string describe(const std::vector<AuditFinding>& findings);  // the first of them

}  // namespace fragsim::test
