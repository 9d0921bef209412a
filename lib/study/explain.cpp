#include "lib/study/explain.hpp"

#include <algorithm>
#include <utility>

#include "lib/study/setup.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kPinners = 5, kRanges = 5;

Moment look_at(Moment::Kind kind, const Trace& trace, const Policy& policy, std::uint32_t op, const Request& request,
    const Bounds& bounds) {
    const MemoryPicture picture = policy.picture();
    const Asking asking{request.stream, request.pool};
    Moment moment{
        kind, op, {}, {}, largest_ranges(picture, asking, kRanges), find_pinners(trace, picture, asking, op, kPinners)};
    moment.shortage.oom = attribute_oom(policy, op, request, bounds);
    moment.shortage.waste = waste_of(policy, picture, asking);
    return moment;
}

// Looks at each request that fails, and remembers where most is in use of the most reserved memory.
class MomentRecorder final : public ReplayObserver {
public:
    MomentRecorder(const Trace& trace, const Policy& policy, const Bounds& bounds)
        : trace_(trace), policy_(policy), bounds_(bounds) {}

    void observe(const Step& step) override {
        const AllocatorStats& stats = policy_.stats();
        const std::pair now{stats.reserved_bytes.all.current, stats.allocated_bytes.all.current};
        if (now > peak_) {
            peak_ = now;
            peak_event_ = step.event;
            peak_buffer_ = step.buffer;
        }
        if (step.kind != EventKind::alloc || step.placement || moments_.size() >= Explanation::kMoments) return;
        moments_.push_back(look_at(
            Moment::Kind::oom, trace_, policy_, step.op, request_of(trace_.buffers[step.buffer.value]), bounds_));
    }

    std::vector<Moment> take() { return std::move(moments_); }
    std::uint32_t peak_event() const { return peak_event_; }
    BufferId peak_buffer() const { return peak_buffer_; }

private:
    const Trace& trace_;
    const Policy& policy_;
    Bounds bounds_;
    std::vector<Moment> moments_;
    std::pair<Bytes, Bytes> peak_{0, 0};  // reserved, and allocated then
    std::uint32_t peak_event_ = 0;
    BufferId peak_buffer_;
};

// The stream with the most requested bytes.
StreamId busiest_stream(const Trace& trace) {
    std::vector<double> bytes(trace.streams.size() + 1);
    for (const Buffer& buffer : trace.buffers)
        bytes[std::min<std::size_t>(buffer.stream, bytes.size() - 1)] += static_cast<double>(buffer.requested);
    return {static_cast<std::uint32_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin())};
}

std::vector<RecordedOomAnswer> add_recorded_ooms(
    Explanation& explanation, const Trace& trace, const PolicySpec& spec, const RunOptions& options) {
    std::vector<RecordedOomAnswer> answers;
    for (const std::uint32_t event : recorded_oom_events(trace)) {
        const RecordedOom& recorded = trace.ooms[trace.events[event].subject];
        std::optional<Moment> moment;
        const auto look = [&](Setup& setup, std::uint32_t op) {
            moment = look_at(Moment::Kind::recorded_oom, trace, setup.policy(), op,
                {recorded.requested, recorded.stream}, spec.info->bounds(options.limits));
        };
        const RecordedOomAnswer answer = ask_recorded_oom(trace, spec, options, event, look);
        moment->shortage.replay_serves = answer.served;
        if (recorded.device_free >= 0) moment->shortage.device_free = recorded.device_free;
        explanation.recorded_ooms_served += answer.served;
        answers.push_back(answer);
        if (explanation.moments.size() < Explanation::kMoments) explanation.moments.push_back(std::move(*moment));
    }
    explanation.ooms += static_cast<std::int64_t>(trace.ooms.size());
    return answers;
}

Moment look_at_peak(const Trace& trace, const PolicySpec& spec, const RunOptions& options,
    const MomentRecorder& recorder, StreamId asking) {
    Hardware hardware(trace, spec, options);
    Setup setup(trace, spec, options, hardware);
    const ReplayOutcome outcome = replay(trace, setup.policy(), setup.device(), {},
        {.frees = options.frees, .end_event = recorder.peak_event() + 1, .left_out = setup.restored().left_out});
    const BufferId buffer = recorder.peak_buffer();
    const Request request = buffer ? request_of(trace.buffers[buffer.value]) : Request{0, asking};
    return look_at(
        Moment::Kind::peak, trace, setup.policy(), outcome.ops == 0 ? 0 : outcome.ops - 1, request,
        spec.info->bounds(options.limits));
}

double recorded_ns(const Trace& trace) {
    return trace.time_us.empty() ? 0 : 1e3 * static_cast<double>(trace.time_us.back() - trace.time_us.front());
}

// Settings that need a memory fraction are shown where one of them is an extra: that one, at the end.
void recommend_setting(Explanation& explanation, const Trace& trace) {
    std::vector<Standing> standings;
    for (const SettingOutcome& outcome : explanation.settings)
        standings.push_back(standing_of(outcome, explanation.limits.bound().has_value()));
    const Recommendation chosen =
        recommend(standings, 0, {.stall_first = false, .small_stall_ns = small_stall_ns(recorded_ns(trace))});
    std::vector<SettingOutcome> shown;
    for (std::size_t i = 0; i < standings.size(); ++i) {
        if (i != 0 && standings[i].traits.needs_memory_fraction) continue;
        if (i != 0 && i == chosen.best) explanation.recommended = shown.size();
        shown.push_back(explanation.settings[i]);
    }
    if (chosen.extra) {
        explanation.extra = shown.size();
        shown.push_back(explanation.settings[*chosen.extra]);
    }
    explanation.settings = std::move(shown);
}

}  // namespace

Explanation explain(
    const Trace& trace, const Setting& in_force, const std::vector<Setting>& settings, const ExplainOptions& options) {
    Explanation explanation;
    RunOptions run = options.run;
    if (!run.limits.bound()) {
        explanation.inferred = capacity_of_recording(trace);
        if (explanation.inferred) run.limits = explanation.inferred->limits();
    }
    explanation.limits = run.limits;

    std::optional<Moment> peak;
    ReplayOutcome outcome;
    {
        Hardware hardware(trace, in_force.spec, run);
        Setup setup(trace, in_force.spec, run, hardware);
        explanation.asking = busiest_stream(trace);
        WasteRecorder course(trace, setup.policy(), {explanation.asking}, options.samples);
        MomentRecorder recorder(trace, setup.policy(), in_force.spec.info->bounds(run.limits));
        ReplayObserver* const observers[] = {&course, &recorder};
        outcome = replay(trace, setup.policy(), setup.device(), observers,
            {.frees = run.frees, .left_out = setup.restored().left_out});
        explanation.left_out = std::ssize(setup.restored().left_out);
        explanation.ooms = outcome.ooms + explanation.left_out;
        explanation.course = course.take();
        explanation.moments = recorder.take();
        if (explanation.moments.empty() && trace.ooms.empty())
            peak = look_at_peak(trace, in_force.spec, run, recorder, explanation.asking);
    }
    explanation.failures =
        count_failures(outcome, explanation.left_out, add_recorded_ooms(explanation, trace, in_force.spec, run));
    std::stable_sort(explanation.moments.begin(), explanation.moments.end(),
        [](const Moment& a, const Moment& b) { return a.op < b.op; });
    if (peak) explanation.moments.push_back(std::move(*peak));
    for (Moment& moment : explanation.moments) {
        moment.shortage.process_limit = run.limits.memory_limit && run.limits.memory_limit == run.limits.bound();
        moment.verdict = judge(moment.shortage);
    }

    // Settings are judged from the same start: what another one had cached when the recording began helps none.
    explanation.starts_in_mid_run = !trace.initial.segments.empty();
    run.adopt_start = !explanation.starts_in_mid_run;
    explanation.settings = try_all_settings(trace, in_force, settings, run, options.jobs);
    explanation.program = options.program;
    recommend_setting(explanation, trace);
    return explanation;
}

}  // namespace fragsim
