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

namespace fragsim {

// A state of memory worth looking at.
struct Moment {
    enum class Kind {
        oom,           // the replay ran out of memory
        recorded_oom,  // the recorded run did, here
        peak,          // reserved memory was largest, and of that most in use
    } kind;
    std::uint32_t op;  // the op, or the one that would have come next
    Shortage shortage;
    Verdict verdict;                    // of an oom
    std::vector<Bytes> largest_ranges;  // free, on the request's stream, descending
    std::vector<Pinner> pinners;
};

struct Explanation {
    Limits limits;
    std::optional<RecordedCapacity> inferred;  // where the limits are from, when nobody gave them
    std::vector<Moment> moments;               // every oom (the first kMoments), or the peak
    std::int64_t ooms = 0;                     // all of them, served or not
    std::int64_t failures = 0;                 // requests that failed here, as count_failures() counts them
    std::int64_t left_out = 0;                 // of them: buffers live when the recording begins that have no room
    std::int64_t recorded_ooms_served = 0;     // that the recorded run did not get, but the replay did
    StreamId asking;                           // whose view the course of the waste takes
    std::vector<WasteSample> course;
    bool starts_in_mid_run = false;          // settings are judged from the live buffers at the start alone
    std::vector<SettingOutcome> settings;    // the one in force first
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
