// Random programs for property tests: a policy with settings, limits, and commands that make a valid trace whatever
// is left of them, so that rapidcheck can shrink a failure to the few that matter.
#pragma once

#include <rapidcheck.h>

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "lib/policy/policy.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim::test {

struct Command {
    enum Kind { alloc, free, free_later, complete, record_stream, empty_cache, synchronize } kind;
    std::uint32_t pick;  // which of the live buffers, modulo their number
    Bytes size;          // of an allocation
    std::uint16_t stream;
};

struct Scenario {
    std::size_t policy = 0;  // index into policies(), modulo their number
    Parameters settings;     // those the policy does not know are left out
    Limits limits;
    std::vector<Command> commands;
};

Trace trace_of(const Scenario& scenario);
PolicySpec spec_of(const Scenario& scenario);
// Ready to paste: the command line's policy and limits, and the trace in the text form.
std::ostream& operator<<(std::ostream& out, const Scenario& scenario);

rc::Gen<Scenario> scenarios();

// Runs `property` on `cases` values; the seed is FRAGSIM_SEED or 1. Fails the test with what rapidcheck says.
void check_property(int cases, const std::function<void(const Scenario&)>& property);

}  // namespace fragsim::test
