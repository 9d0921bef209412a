// One policy over one trace on the host model: everything a report may want, as plain data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/device/cuda_malloc_addresses.hpp"
#include "lib/metrics/catalog.hpp"
#include "lib/metrics/oom.hpp"
#include "lib/metrics/timeline.hpp"
#include "lib/replay/auditor.hpp"
#include "lib/replay/history.hpp"
#include "lib/replay/replay.hpp"

namespace fragsim {

struct RunOptions {
    std::optional<Bytes> capacity;  // what the process may reserve; none: no bound
    OnOom on_oom = OnOom::skip;
    Frees frees = Frees::requested;
    const CudaMallocAddresses* address_space = nullptr;  // of the process at the start; null: a fresh one
    bool audit = false;
    bool record_history = false;  // fill Result::history
    Timeline::Sink timeline;      // empty: none
    std::uint32_t timeline_every = 1;
};

// A request that the recorded run did not get: would this policy have served it, in the state it had reached?
struct RecordedOomAnswer {
    std::uint32_t op;  // the op that would have come next
    Bytes requested;   // rounded by the recorded allocator
    bool served;
};

struct Result {
    std::string policy;                           // name
    std::string label;                            // name and the parameters that were given
    Parameters parameters;                        // all of them
    std::optional<TorchSettings> torch_settings;  // none: not a policy of PyTorch's
    std::optional<Bytes> capacity;
    std::vector<std::string> advice;

    std::vector<Metric> metrics;
    std::vector<Oom> ooms;
    std::vector<RecordedOomAnswer> recorded_ooms;  // the first kMaxRecordedOoms of the trace's
    std::vector<AuditFinding> audit_findings;
    std::vector<DriverCall> driver_calls;
    std::vector<HistoryEntry> history;  // if asked for
    MemoryPicture end;                  // the policy's memory after the last op
    ReplayOutcome outcome;
    double replay_seconds = 0;  // varies from run to run

    static constexpr std::size_t kMaxRecordedOoms = 16;

    // No request failed, and those that failed in the recorded run would have been served.
    bool survives() const;
    std::int64_t count(std::string_view key) const;  // of an integer metric that is there
    double real(std::string_view key) const;         // of any metric that is there
};

// Throws Error(usage) for parameters the policy refuses.
Result run_policy(const Trace& trace, const PolicySpec& spec, const RunOptions& options);

}  // namespace fragsim
