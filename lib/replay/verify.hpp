// Self-replay: does a policy, driven by a recorded program and a device that answers as recorded, do what the recording
// says its allocator did? Every address, every segment event in order, and the blocks at the end are compared.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lib/policy/policy.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim {

struct Divergence {
    std::uint32_t event;  // index into Trace::events
    std::string expected, actual;
};

struct VerifyResult {
    int device = 0;
    Completeness completeness = Completeness::complete;
    std::int64_t allocs = 0, allocs_exact = 0;  // allocations at their recorded address
    std::int64_t segment_events = 0,
                 segment_events_exact = 0;  // driver calls of the recorded kind, size, address, in order
    std::int64_t ooms = 0, ooms_exact = 0;  // recorded out-of-memory entries met
    std::optional<bool> end_exact;          // the blocks at the end; none: the recording has no picture
    std::optional<Divergence> first_divergence;

    bool exact() const { return !first_divergence; }
};

// `make_policy` gets a device that must outlive the policy.
VerifyResult verify(const Trace& trace, const std::function<std::unique_ptr<Policy>(Device&)>& make_policy);

}  // namespace fragsim
