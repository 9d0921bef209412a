// Whatever the policy and the program: every reserved byte is in exactly one part of the waste.
#include "lib/metrics/waste.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/scenario.hpp"

using namespace fragsim;
using namespace fragsim::test;

TEST_CASE("requested and wasted bytes add up to the reserved ones", "[property][waste]") {
    check_property(300, [](const Scenario& scenario) {
        const PolicySpec spec = spec_of(scenario);
        const Playback play(
            trace_of(scenario), [&](const PolicyContext& context) { return spec.info->make(spec.given, context); },
            Playback::within(*spec.info, scenario.limits));
        const Waste waste = waste_of(*play.policy, play.policy->picture(), {0, {0}});
        const AllocatorStats& stats = play.policy->stats();
        RC_ASSERT(waste.reserved() == stats.reserved_bytes.all.current);
        RC_ASSERT(waste.requested + waste.rounding + waste.unsplit == stats.allocated_bytes.all.current);
        RC_ASSERT(waste.pending == stats.active_bytes.all.current - stats.allocated_bytes.all.current);
        for (const Bytes part : {waste.requested, waste.rounding, waste.unsplit, waste.pending, waste.pinned,
                 waste.releasable, waste.other_size_class, waste.other_streams, waste.private_pools})
            RC_ASSERT(part >= 0);
    });
}
