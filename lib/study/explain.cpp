#include "lib/study/explain.hpp"

#include <algorithm>
#include <utility>

#include "lib/study/setup.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kPinners = 5, kRanges = 5;

Moment look_at(Moment::Kind kind, const Trace& trace, const Policy& policy, std::uint32_t op, const Request& asking,
    const Bounds& bounds, bool rejected = false) {
    const MemoryPicture picture = policy.picture();
    Moment moment;
    moment.kind = kind;
    moment.op = op;
    moment.asking = asking;
    moment.largest_ranges = largest_ranges(policy, picture, asking, kRanges);
    moment.pinners = find_pinners(trace, policy, picture, asking, op, kPinners);
    moment.shortage.oom = attribute_oom(policy, op, asking, bounds, rejected);
    moment.shortage.waste = waste_of(policy, picture, asking);
    return moment;
}

// The state before event `end`.
Moment look_before(Moment::Kind kind, const Trace& trace, const PolicySpec& spec, const RunOptions& options,
    std::uint32_t end, const Request& asking) {
    Hardware hardware(trace, spec, options);
    Setup setup(trace, spec, options, hardware);
    const ReplayOutcome outcome = replay(trace, setup.policy(), setup.device(), {},
        {.frees = options.frees, .end_event = end, .left_out = setup.restored().left_out});
    const bool peak = kind == Moment::Kind::peak;  // is of the op before, not of the next one
    const std::uint32_t op = peak && outcome.ops > 0 ? outcome.ops - 1 : outcome.ops;
    return look_at(kind, trace, setup.policy(), op, asking, spec.info->bounds(options.limits));
}

// Looks at each request that fails, and remembers where most is in use of the most reserved memory.
class MomentRecorder final : public ReplayObserver {
public:
    MomentRecorder(const Trace& trace, const Policy& policy, const Bounds& bounds)
        : trace_(trace), policy_(policy), bounds_(bounds), peak_(now()) {}

    void observe(const Step& step) override {
        if (now() > peak_) {
            peak_ = now();
            peak_end_ = step.event + 1;
            peak_buffer_ = step.buffer;
        }
        if (step.kind != EventKind::alloc || step.placement || moments_.size() >= Explanation::kMoments) return;
        moments_.push_back(look_at(Moment::Kind::oom, trace_, policy_, step.op,
            request_of(trace_.buffers[step.buffer.value]), bounds_, step.rejected));
        moments_.back().workspace = workspace_at(trace_, step.event);
    }

    std::vector<Moment> take() { return std::move(moments_); }
    std::uint32_t peak_end() const { return peak_end_; }
    BufferId peak_buffer() const { return peak_buffer_; }

private:
    std::pair<Bytes, Bytes> now() const {
        return {policy_.stats().reserved_bytes.all.current, policy_.stats().allocated_bytes.all.current};
    }

    const Trace& trace_;
    const Policy& policy_;
    Bounds bounds_;
    std::vector<Moment> moments_;
    std::pair<Bytes, Bytes> peak_;  // reserved, and allocated then
    std::uint32_t peak_end_ = 0;    // one past the event that made it; 0: memory begins with it
    BufferId peak_buffer_;          // none: the event has none
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
        const Request request{recorded.requested, recorded.stream};
        std::optional<Moment> moment;
        const auto look = [&](Setup& setup, std::uint32_t op) {
            moment = look_at(
                Moment::Kind::recorded_oom, trace, setup.policy(), op, request, spec.info->bounds(options.limits));
        };
        const RecordedOomAnswer answer = ask_recorded_oom(trace, spec, options, event, look);
        if (answer.served)  // then the request itself is in what was looked at
            moment = look_before(Moment::Kind::recorded_oom, trace, spec, options, event, request);
        moment->shortage.replay_serves = answer.served;
        if (recorded.device_free >= 0) moment->shortage.device_free = recorded.device_free;
        explanation.recorded_ooms_served += answer.served;
        answers.push_back(answer);
        if (explanation.moments.size() < Explanation::kMoments) explanation.moments.push_back(std::move(*moment));
    }
    explanation.ooms += static_cast<std::int64_t>(trace.ooms.size());
    return answers;
}

Moment look_at_peak(
    const Trace& trace, const PolicySpec& spec, const RunOptions& options, const MomentRecorder& recorder) {
    const BufferId buffer = recorder.peak_buffer();
    const Request asking = buffer ? request_of(trace.buffers[buffer.value]) : Request{0, busiest_stream(trace)};
    Moment moment = look_before(Moment::Kind::peak, trace, spec, options, recorder.peak_end(), asking);
    moment.at_start = recorder.peak_end() == 0;
    return moment;
}

// As the first of the moments sees it, so that it and the course agree.
std::vector<WasteSample> course_of_waste(const Trace& trace, const PolicySpec& spec, const RunOptions& options,
    const Request& asking, std::uint32_t samples) {
    Hardware hardware(trace, spec, options);
    Setup setup(trace, spec, options, hardware);
    WasteRecorder course(trace, setup.policy(), asking, samples);
    ReplayObserver* const observers[] = {&course};
    replay(trace, setup.policy(), setup.device(), observers,
        {.frees = options.frees, .left_out = setup.restored().left_out});
    return course.take();
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
        explanation.inferred = capacity_of_recording(trace, collects_garbage(in_force.spec));
        if (explanation.inferred) run.limits = explanation.inferred->limits();
    }
    explanation.limits = run.limits;

    std::optional<Moment> peak;
    ReplayOutcome outcome;
    {
        Hardware hardware(trace, in_force.spec, run);
        Setup setup(trace, in_force.spec, run, hardware);
        MomentRecorder recorder(trace, setup.policy(), in_force.spec.info->bounds(run.limits));
        ReplayObserver* const observers[] = {&recorder};
        outcome = replay(trace, setup.policy(), setup.device(), observers,
            {.frees = run.frees, .left_out = setup.restored().left_out});
        explanation.left_out = std::ssize(setup.restored().left_out);
        explanation.ooms = outcome.ooms + explanation.left_out;
        explanation.moments = recorder.take();
        if (explanation.moments.empty() && trace.ooms.empty()) peak = look_at_peak(trace, in_force.spec, run, recorder);
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
    // What fails here is explained first, then what only the recorded run did not get.
    std::stable_partition(explanation.moments.begin(), explanation.moments.end(),
        [](const Moment& moment) { return !moment.shortage.replay_serves; });
    explanation.course =
        course_of_waste(trace, in_force.spec, run, explanation.moments.front().asking, options.samples);

    // Settings are compared, so they start alike (Start).
    explanation.starts_in_mid_run = !trace.initial.segments.empty();
    run.adopt_start = !explanation.starts_in_mid_run;
    explanation.settings = try_all_settings(trace, in_force, settings, run, options.jobs);
    for (Moment& moment : explanation.moments)
        if (const auto& card = explanation.settings.front().min_capacity; card && moment.verdict == Verdict::served)
            moment.needs = card->bytes;
    explanation.program = options.program;
    recommend_setting(explanation, trace);
    return explanation;
}

}  // namespace fragsim
