// Why did it run out of memory, or what made the peak; who pins the gaps; and which setting would have carried the run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/metrics/pinners.hpp"
#include "lib/metrics/waste.hpp"
#include "lib/policy/torch_program.hpp"
#include "lib/study/capacity_of_recording.hpp"
#include "lib/study/setting_outcome.hpp"
#include "lib/study/verdict.hpp"
#include "lib/study/workspace.hpp"

namespace fragsim {

// A state of memory worth looking at.
struct Moment {
    enum class Kind {
        oom,           // the replay ran out of memory
        recorded_oom,  // the recorded run did, here
        peak,          // reserved memory was largest, and of that most in use
    } kind = Kind::oom;
    std::uint32_t op = 0;   // the op, or the one that would have come next
    bool at_start = false;  // before the first event
    Request asking{};       // whose view of memory it is; `bytes` 0: nobody asks for anything
    Shortage shortage{};
    Verdict verdict{};                  // of an oom
    std::vector<Bytes> largest_ranges;  // free, where the request may be served, descending
    std::vector<Pinner> pinners;
    std::optional<Workspace> workspace;  // of an oom: what the program may do without
    std::optional<Bytes> needs;          // of a request that was served here: the smallest card for all of the run
};

struct Explanation {
    Limits limits;
    std::optional<RecordedCapacity> inferred;  // where the limits are from, when nobody gave them
    std::vector<Moment> moments;               // every oom (the first kMoments), what fails here first; or the peak
    std::int64_t ooms = 0;                     // all of them, served or not
    std::int64_t failures = 0;                 // requests that failed here, as count_failures() counts them
    std::int64_t left_out = 0;                 // of them: buffers live when the recording begins that have no room
    std::int64_t recorded_ooms_served = 0;     // that the recorded run did not get, but the replay did
    std::vector<WasteSample> course;           // as the first of the moments sees it
    bool starts_in_mid_run = false;            // settings are judged from the live buffers at the start alone
    std::vector<SettingOutcome> settings;      // the one in force first
    // Indices into `settings`.
    std::optional<std::size_t> recommended;  // none: nothing is worth a change of what is in force
    std::optional<std::size_t> extra;        // better still, but needs a memory fraction
    TorchProgram program;                    // where the settings are PyTorch's

    static constexpr std::size_t kMoments = 16;
};

struct ExplainOptions {
    TorchProgram program;
    RunOptions run;               // its limits: what the user gave
    std::uint32_t samples = 400;  // of the waste's course
    int jobs = 1;
};

// `in_force`: what the recorded run was made under. `settings`: what else to try, in this order of preference among
// equals; one that equals `in_force` is left out.
Explanation explain(
    const Trace& trace, const Setting& in_force, const std::vector<Setting>& settings, const ExplainOptions& options);

}  // namespace fragsim
