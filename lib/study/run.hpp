// One policy over one trace on the host model: everything a report may want, as plain data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/limits.hpp"
#include "lib/device/cuda_malloc_addresses.hpp"
#include "lib/metrics/catalog.hpp"
#include "lib/metrics/courses.hpp"
#include "lib/metrics/latency.hpp"
#include "lib/metrics/oom.hpp"
#include "lib/metrics/series.hpp"
#include "lib/metrics/timeline.hpp"
#include "lib/replay/auditor.hpp"
#include "lib/replay/history.hpp"
#include "lib/replay/placement_record.hpp"
#include "lib/replay/replay.hpp"
#include "lib/replay/touch_mode.hpp"
#include "lib/study/agreement.hpp"

namespace fragsim {

// Where a policy runs.
struct DeviceChoice {
    enum class Kind { host, cuda } kind = Kind::host;
    int ordinal = 0;  // of a CUDA device
    bool ballast =
        false;  // CUDA: the rest of the card is really filled, so that the driver refuses beyond the capacity

    std::string label() const;  // "host", "cuda:0"
};

// Where a replay begins. A recording that starts in mid-run begins with live buffers and with what its allocator had
// cached. That cache was made under the recording's own setting: another one would not have it, so it starts from the
// live buffers alone, and so do all where several are compared.
enum class Start {
    empty,     // no memory was in use or cached
    recorded,  // with the recorded memory, taken over as it was
    live,      // with what was live, allocated anew
};
const char* name(Start start);

// Is `policy` replayed from the recorded memory? `in_force`: what the recording was made under, if that is known;
// `alone`: there is no other one to compare it with.
bool takes_over_start(const PolicySpec& policy, const std::optional<PolicySpec>& in_force, bool alone);

struct RunOptions {
    DeviceChoice device;
    int repetitions = 0;                // measured, after one that is not; 0: one replay, nothing is timed
    TouchMode touch = TouchMode::none;  // CUDA
    std::optional<double> pace;         // CUDA: keeps the recorded time between events, times this factor
    bool record_placements = false;     // fill Result::placements
    // The policy may take over the memory that a recording begins with (takes_over_start). Not on a real device, where
    // it does not exist.
    bool adopt_start = true;
    const CostModel* costs = &CostModel::h200();
    Limits limits;
    OnOom on_oom = OnOom::skip;
    Frees frees = Frees::requested;
    const CudaMallocAddresses* address_space = nullptr;  // of the process at the start; null: a fresh one
    bool audit = false;
    bool record_history = false;  // fill Result::start and Result::history
    bool record_series = false;   // fill Result::series
    bool record_courses = false;  // fill Result::courses
    Timeline::Sink timeline;      // empty: none
    std::uint32_t timeline_every = 1;
};

// A request that the recorded run did not get: would this policy have served it, in the state it had reached?
struct RecordedOomAnswer {
    std::uint32_t op;  // the op that would have come next
    Bytes requested;   // rounded by the recorded allocator
    bool served;
};

// Every request that a run did not get, the one count of them: those of the replay, those of the recorded run that are
// refused here, too, and the buffers that were live at the start and have no room.
std::int64_t count_failures(
    const ReplayOutcome& outcome, std::int64_t left_out, const std::vector<RecordedOomAnswer>& recorded);

struct Result {
    std::string policy;                           // name
    std::string label;                            // name and the parameters that were given
    Parameters parameters;                        // all of them
    std::optional<TorchSettings> torch_settings;  // none: not a policy of PyTorch's
    Limits limits;
    std::vector<std::string> advice;

    std::vector<Metric> metrics;
    std::vector<Oom> ooms;
    std::vector<RecordedOomAnswer> recorded_ooms;  // the first kMaxRecordedOoms of the trace's
    std::vector<AuditFinding> audit_findings;
    std::vector<DriverCall> driver_calls;
    std::vector<HistoryEntry> history;  // if asked for
    std::vector<Course> courses;        // if asked for, with every point
    Series series;                      // if asked for
    MemoryPicture start;                // the policy's memory before the first event, with the history
    MemoryPicture end;                  // and after the last op
    ReplayOutcome outcome;
    Start start_from = Start::empty;
    std::int64_t left_out = 0;  // buffers that were live at the start and did not fit

    DeviceChoice device;
    std::string card;  // CUDA: its name and the driver's version
    std::optional<PlacementRecord> placements;
    std::optional<Agreement> agreement;         // of a real device with the host model, by who ran both
    std::optional<double> host_driver_time_ns;  // and what the model says of the driver's time
    std::int64_t spoilt_words = 0;              // TouchMode::verify: memory that did not hold what was written
    // What varies from run to run.
    double replay_seconds = 0;
    std::optional<LatencyReport> latency;  // of the repetitions

    static constexpr std::size_t kMaxRecordedOoms = 16;

    std::int64_t failures() const { return count_failures(outcome, left_out, recorded_ooms); }
    bool survives() const { return failures() == 0; }
    std::int64_t count(std::string_view key) const;  // of an integer metric that is there
    double real(std::string_view key) const;         // of any metric that is there
};

// Throws Error(usage) for parameters the policy refuses.
Result run_policy(const Trace& trace, const PolicySpec& spec, const RunOptions& options);

}  // namespace fragsim
