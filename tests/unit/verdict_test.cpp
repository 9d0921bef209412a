// Small programs with one plain reason each to run out of memory, and what explain says of them.
#include <algorithm>

#include "lib/device/host_device.hpp"
#include "lib/report/explanation.hpp"
#include "lib/report/setting_words.hpp"
#include "lib/study/explain.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

Setting setting(const std::string& conf) {
    std::vector<std::string> warnings;
    return {policy_from_alloc_conf(conf, warnings), conf};
}

Explanation explained(const Trace& trace, std::optional<Bytes> capacity, const std::string& in_force = "",
    const std::vector<std::string>& others = {"", "expandable_segments:True"}) {
    ExplainOptions options;
    options.run.limits.capacity = capacity;
    std::vector<Setting> settings;
    for (const std::string& conf : others) settings.push_back(setting(conf));
    return explain(trace, setting(in_force), settings, options);
}

Verdict verdict(const std::string& text, Bytes capacity) {
    const Explanation explanation = explained(script(text), capacity);
    REQUIRE(explanation.moments.size() == 1);
    CHECK(explanation.moments.front().kind == Moment::Kind::oom);
    return explanation.moments.front().verdict;
}

// 40 MiB live in the middle of two free halves of 30 MiB.
const char* const kHoles = "a 0 30M; a 1 40M; a 2 30M; f 0; f 2; a 3 50M";

Trace with_recorded_oom(std::string_view text, Bytes requested, Bytes device_free) {
    Trace trace = script(text);
    trace.ooms.push_back({requested, device_free, {0}});
    trace.events.push_back({static_cast<std::uint32_t>(EventKind::oom), 0});
    return trace;
}

}  // namespace

TEST_CASE("more is live than there is: capacity", "[unit][explain]") {
    CHECK(verdict("a 0 60M; a 1 60M", 100 * kMiB) == Verdict::capacity);
}

TEST_CASE("it would fit unrounded and without the rests of blocks: rounding", "[unit][explain]") {
    // A segment of 22 MiB, whose rest of not quite 1 MiB is not cut off.
    CHECK(verdict("a 0 21M+1; a 1 21M+1", 43 * kMiB) == Verdict::rounding);
}

TEST_CASE("enough is free, but in pieces: fragmentation", "[unit][explain]") {
    // One segment of 100 MiB, cut in three, the middle in use.
    const char* const text = "a 9 100M; f 9; a 0 30M; a 1 40M; a 2 30M; f 0; f 2; a 3 50M";
    CHECK(verdict(text, 100 * kMiB) == Verdict::fragmentation);
    const Explanation explanation = explained(script(text), 100 * kMiB);
    const Moment& moment = explanation.moments.front();
    CHECK(moment.largest_ranges == std::vector<Bytes>{30 * kMiB, 30 * kMiB});
    CHECK(moment.shortage.waste.pinned == 60 * kMiB);
    REQUIRE(moment.pinners.size() == 1);
    CHECK(moment.pinners.front().bytes == 40 * kMiB);
    CHECK(moment.pinners.front().free_bytes == 60 * kMiB);
    CHECK(moment.pinners.front().oldest_op == 3);
    CHECK(verdict_sentence(moment).find("fragmentation") == 0);
}

TEST_CASE("free memory of another stream is no use: other streams", "[unit][explain]") {
    CHECK(verdict("a 9 100M 1; f 9; a 0 30M 1; a 1 60M 0", 100 * kMiB) == Verdict::other_streams);
}

TEST_CASE("a whole cached segment of another stream could be given back", "[unit][explain]") {
    const Explanation explanation = explained(script("a 0 100M 0; f 0; a 1 50M 1"), std::nullopt);
    const Waste& waste = explanation.moments.front().shortage.waste;
    CHECK(waste.releasable == 100 * kMiB);
    CHECK(waste.other_streams == 0);
    CHECK(verdict_sentence(explanation.moments.front()).find("100 MiB free that could be given back, 0 B wasted") !=
          std::string::npos);
}

TEST_CASE("free memory of the large pool is no use to a small request, nor the other way round", "[unit][explain]") {
    // Three segments of 20 MiB, half used, and the small pool's two of 2 MiB are full.
    const std::string text =
        "a 0 9M; a 1 9M; a 2 9M; a 3 9M; a 4 9M; a 5 9M; a 6 1M; a 7 1M; a 8 1M; a 9 1M; f 1; f 3; f 5; a x 512K";
    const Explanation explanation = explained(script(text), 64 * kMiB);
    const Moment& moment = explanation.moments.front();
    CHECK(moment.verdict == Verdict::other_size_class);
    CHECK(moment.shortage.oom.cause == OomCause::other_size_class);
    CHECK(moment.largest_ranges.empty());
    CHECK(moment.pinners.empty());
    CHECK(moment.shortage.waste.other_size_class == 33 * kMiB);
    CHECK(moment.shortage.waste.pinned == 0);
    CHECK(verdict_sentence(moment).find("33.0 MiB are free in the pool of large blocks") != std::string::npos);
    const std::string other = "a 0 512K; a 1 512K; a 2 512K; a 3 512K; f 0; f 1; f 2; a 4 1280K";
    CHECK(verdict(other, 3 * kMiB) == Verdict::other_size_class);
}

TEST_CASE("allocators without size classes serve small requests from any hole", "[unit][explain]") {
    const PolicySpec bfc = parse_policy_spec("bfc", policies());
    HostDevice device({});
    const auto made = bfc.info->make({}, {device, {}, {}, nullptr});
    const SegmentPicture segment{0x7f0000000000, 20 * kMiB, {1}, 0, false, false, 0, 1};
    for (const Bytes bytes : {Bytes{512}, 5 * kMiB}) CHECK(made->barrier(segment, {bytes, {0}}) == Barrier::none);
}

TEST_CASE("free memory of a graph's pool is no use: private pools", "[unit][explain]") {
    Trace trace = script("a 9 100M; f 9; a 0 30M; a 1 60M");
    trace.pools = {{0, 0}, {0, 1}};
    trace.buffers[0].pool = trace.buffers[1].pool = 1;
    const Explanation explanation = explained(trace, 100 * kMiB);
    REQUIRE(explanation.moments.size() == 1);
    CHECK(explanation.moments.front().verdict == Verdict::private_pools);
    CHECK(explanation.moments.front().shortage.waste.private_pools == 70 * kMiB);
}

TEST_CASE("a recorded refusal with room on the device shows a limit of the process", "[unit][explain]") {
    // 60 MiB were held; 60 more were refused while 10 GiB were free.
    const Trace trace = with_recorded_oom("a 0 60M", 60 * kMiB, 10 * kGiB);
    const auto recorded = capacity_of_recording(trace);
    CHECK_FALSE(recorded);  // a text trace has no driver calls to see what was held

    Trace seen = trace;
    seen.segment_events.push_back({0, SegmentEventKind::alloc, {0}, 0x7f0000000000, 60 * kMiB});
    const auto capacity = capacity_of_recording(seen);
    REQUIRE(capacity);
    CHECK(capacity->bytes == 60 * kMiB);
    CHECK_FALSE(capacity->full_device);
    const Explanation explanation = explained(seen, std::nullopt);
    REQUIRE(explanation.moments.size() == 1);
    CHECK(explanation.moments.front().kind == Moment::Kind::recorded_oom);
    CHECK(explanation.moments.front().verdict == Verdict::limit);

    // With the card's size given, the replay serves it: the limit was below that.
    CHECK(explained(seen, 80 * kGiB).moments.front().verdict == Verdict::limit);
}

TEST_CASE("a request that a full device refused is served on a larger one, and the need is told", "[unit][explain]") {
    Trace trace = with_recorded_oom("a 0 60M", 60 * kMiB, 8 * kMiB);
    trace.segment_events.push_back({0, SegmentEventKind::alloc, {0}, 0x7f0000000000, 60 * kMiB});
    const Explanation larger = explained(trace, 80 * kGiB);
    const Moment& served = larger.moments.front();
    CHECK(served.verdict == Verdict::served);
    CHECK(served.shortage.oom.reserved == 60 * kMiB);  // without the request
    CHECK(served.needs == 120 * kMiB);
    const std::string sentence = verdict_sentence(served);
    CHECK(sentence.starts_with("served at this capacity"));
    CHECK(sentence.find("needs 120.0 MiB") != std::string::npos);
    CHECK(sentence.find("If the recorded card was as large") != std::string::npos);
    // Without the card's size it is what the process had.
    const auto capacity = capacity_of_recording(trace);
    REQUIRE(capacity);
    CHECK(capacity->full_device);
    CHECK(capacity->bytes == 64 * kMiB);  // of the 8 MiB that were free 3.125 cannot be had, and the rest in whole pages
    CHECK(explained(trace, std::nullopt).moments.front().verdict == Verdict::capacity);
}

TEST_CASE("without an out of memory the peak is explained", "[unit][explain]") {
    const Explanation explanation = explained(script(kHoles), std::nullopt);
    REQUIRE(explanation.moments.size() == 1);
    CHECK(explanation.moments.front().kind == Moment::Kind::peak);
    CHECK(explanation.moments.front().op == 5);
    CHECK(explanation.moments.front().shortage.waste.reserved() == 150 * kMiB);
    CHECK(explanation.ooms == 0);
}

TEST_CASE("a setting that carries the run is recommended, one already in force never", "[unit][explain]") {
    const Trace trace = script("a 9 100M; f 9; a 0 30M; a 1 40M; a 2 30M; f 0; f 2; a 3 40M");
    const Explanation helped = explained(trace, 100 * kMiB);
    REQUIRE(helped.recommended);
    const SettingOutcome& best = helped.settings[*helped.recommended];
    CHECK(best.trial.survives());
    CHECK(setting_line(*best.setting.alloc_conf) == "export PYTORCH_ALLOC_CONF=expandable_segments:True");

    const Explanation there = explained(trace, 100 * kMiB, "expandable_segments:True");
    CHECK_FALSE(there.recommended);
    CHECK(std::count_if(there.settings.begin(), there.settings.end(),
              [](const SettingOutcome& s) { return s.setting.alloc_conf == "expandable_segments:True"; }) == 1);
    CHECK(there.settings.front().in_force);
}

TEST_CASE("keys that defeat each other are called out", "[unit][explain]") {
    const Explanation explanation =
        explained(script("a 0 1M"), std::nullopt, "max_split_size_mb:64,expandable_segments:True");
    REQUIRE_FALSE(explanation.settings.front().advice.empty());
    CHECK(explanation.settings.front().advice.front().find("defeats both") != std::string::npos);
}

TEST_CASE("what is not better is not recommended, even if it costs less", "[unit][explain]") {
    const Explanation explanation = explained(script("a 0 30M; f 0; a 1 30M"), std::nullopt);
    CHECK_FALSE(explanation.recommended);
    CHECK(recommendation(explanation).starts_with("Keep PyTorch's default"));
}

TEST_CASE("a start that does not fit fails, even when no later request does", "[unit][explain]") {
    Trace trace = script("a 0 1M");
    trace.completeness = Completeness::mid_run;
    const BufferId live{static_cast<std::uint32_t>(trace.buffers.size())};
    trace.buffers.push_back({60 * kMiB, 0x7f0000000000, 0, 0, {}});
    trace.initial.segments.push_back({0x7f0000000000, 60 * kMiB, {0}, 0, false, false, 0, 1});
    trace.initial.blocks.push_back({0x7f0000000000, 60 * kMiB, 60 * kMiB, live, BlockState::active_allocated});
    const Explanation explanation = explained(trace, 10 * kMiB);
    CHECK(explanation.ooms == 1);
    CHECK(explanation.left_out == 1);
    CHECK(explanation.failures == 1);
    CHECK(explanation.settings.front().trial.ooms == 1);
    RunOptions options;
    options.limits.capacity = 10 * kMiB;
    options.adopt_start = false;
    CHECK(run_policy(trace, setting("").spec, options).failures() == 1);
    REQUIRE(explanation.moments.size() == 1);
    CHECK(explanation.moments.front().kind == Moment::Kind::peak);
    CHECK_FALSE(explanation.settings.front().trial.survives());
    REQUIRE(explanation.settings.front().min_capacity);
    CHECK(explanation.settings.front().min_capacity->bytes >= 62 * kMiB);
}

TEST_CASE("a recording in which no event has a buffer is explained from its start", "[unit][explain]") {
    Trace trace;
    trace.completeness = Completeness::mid_run;
    trace.streams = {0};
    trace.buffers.push_back({30 * kMiB, 0x7f0000000000, 0, 0, {}});
    trace.initial.segments = {{0x7f0000000000, 32 * kMiB, {0}, 0, false, false, 0, 2},
        {0x7f0010000000, 20 * kMiB, {0}, 0, false, false, 2, 1}};
    trace.initial.blocks = {{0x7f0000000000, 30 * kMiB, 30 * kMiB, {0}, BlockState::active_allocated},
        {0x7f0000000000 + 30 * kMiB, 2 * kMiB, 0, {}, BlockState::inactive},
        {0x7f0010000000, 20 * kMiB, 0, {}, BlockState::inactive}};
    for (const bool empties : {true, false}) {
        if (empties) trace.events = {{static_cast<std::uint32_t>(EventKind::empty_cache), 0}};
        if (!empties) trace.events = {{static_cast<std::uint32_t>(EventKind::marker), 0}};
        trace.markers = {"snapshot"};
        const Explanation explanation = explained(trace, std::nullopt);
        REQUIRE(explanation.moments.size() == 1);
        CHECK(explanation.moments.front().at_start);
        CHECK(explanation.moments.front().shortage.waste.reserved() == 52 * kMiB);
        CHECK(verdict_sentence(explanation.moments.front()).find("at the start, before op 0, 52.0 MiB") !=
              std::string::npos);
        CHECK(arithmetic(explanation.moments.front()).find("asked for") == std::string::npos);
    }
    // The only buffer has no room: nothing is left that asks for anything.
    CHECK(explained(trace, 10 * kMiB).left_out == 1);
}

TEST_CASE("a peak that is reserved when the history begins is found, and the course agrees", "[unit][explain]") {
    Trace trace = script("e; a 0 4M");
    trace.completeness = Completeness::mid_run;
    trace.initial.segments = {{0x7f0000000000, 800 * kMiB, {0}, 0, false, false, 0, 1}};
    trace.initial.blocks = {{0x7f0000000000, 800 * kMiB, 0, {}, BlockState::inactive}};
    const Explanation explanation = explained(trace, std::nullopt);
    const Moment& peak = explanation.moments.front();
    CHECK(peak.at_start);
    CHECK(peak.shortage.waste.reserved() == 800 * kMiB);
    REQUIRE(explanation.course.size() == 2);
    CHECK(explanation.course.front().start);
    CHECK(explanation.course.front().waste.reserved() == 800 * kMiB);
    CHECK(explanation.course.back().waste.reserved() == 20 * kMiB);
    // The table starts from what was live: it says where the rest is.
    CHECK(explanation.settings.front().trial.reserved_peak == 20 * kMiB);
    CHECK(settings_notes(explanation).find("with the cache that it began with, the run reserved 800 MiB") !=
          std::string::npos);
}

TEST_CASE("a workspace that a library may do without is told, and the run may fit", "[unit][explain]") {
    const Trace trace = script("a 0 60M; a 1 60M; f 1; a 2 20M");
    const Explanation explanation = explained(trace, 100 * kMiB);
    const Moment& moment = explanation.moments.front();
    REQUIRE(moment.workspace);
    CHECK(moment.workspace->ops == 1);
    CHECK(verdict_sentence(moment).find("The program may go on with less") != std::string::npos);
    CHECK(explanation.settings.front().trial.may_survive());
    CHECK(settings_table(explanation).render(0, false).find("may fit, 1 OOM") != std::string::npos);

    const Explanation kept = explained(script("a 0 60M; a 1 60M; a 2 1M; a 3 1M; a 4 1M; f 1"), 100 * kMiB);
    CHECK_FALSE(kept.moments.front().workspace);
    CHECK_FALSE(kept.settings.front().trial.may_survive());
    CHECK(settings_table(kept).render(0, false).find("may fit") == std::string::npos);
    // One request that is not optional is enough.
    const Explanation both = explained(script("a 0 60M; a 1 60M; f 1; a 2 60M; a 3 1M; a 4 1M; a 5 1M"), 100 * kMiB);
    CHECK(both.settings.front().trial.ooms == 2);
    CHECK(both.settings.front().trial.optional_ooms == 1);
    CHECK_FALSE(both.settings.front().trial.may_survive());
}

TEST_CASE("a rejection is a verdict of its own", "[unit][explain]") {
    const Trace trace = script("a 0 30M; f 0; a 1 40M");
    const Explanation explanation =
        explained(trace, 64 * kMiB, "throw_on_cudamalloc_oom:True,per_process_memory_fraction:1.0");
    REQUIRE(explanation.moments.size() == 1);
    CHECK(explanation.moments.front().verdict == Verdict::rejected);
    CHECK(verdict_sentence(explanation.moments.front()).find("refused before 30.0 MiB of cached memory") !=
          std::string::npos);
}
