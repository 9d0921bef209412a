// What every policy of the table owes its users.
#include <fmt/format.h>

#include <random>
#include <set>

#include "lib/core/error.hpp"
#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/script.hpp"
#include "tests/support/truth.hpp"
#include "traces/registry.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// Values for parameters that have no default.
PolicySpec spec_of(const PolicyInfo& info) {
    PolicySpec spec{&info, {}};
    for (const std::string_view required : info.required) {
        INFO("parameter " << required << " of " << info.name << ": say a sensible value here");
        REQUIRE(required == "max_split_size_mb");
        spec.given.emplace_back(required, "32");
    }
    return spec;
}

MakePolicy maker(const PolicyInfo& info) {
    return [spec = spec_of(info)](const PolicyContext& context) { return spec.info->make(spec.given, context); };
}

// A program of allocations, frees at once and frees that wait, on two streams; everything is freed at its end.
Trace program(unsigned seed, int allocations) {
    std::mt19937 random(seed);
    std::string text;
    std::vector<int> live, waiting;
    const auto take = [&](std::vector<int>& from) {
        std::swap(from[random() % from.size()], from.back());
        const int id = from.back();
        from.pop_back();
        return id;
    };
    for (int id = 0; id < allocations; ++id) {
        const auto bytes = std::size_t{1} << random() % 25;
        text += fmt::format("a {} {} {}\n", id, bytes + random() % bytes, random() % 5 == 0 ? 1 : 0);
        live.push_back(id);
        if (random() % 3 == 0) text += fmt::format("f {}\n", take(live));
        if (random() % 8 == 0 && !live.empty()) {
            waiting.push_back(take(live));
            text += fmt::format("r {} 7\nf {}\n", waiting.back(), waiting.back());
        }
        if (random() % 6 == 0 && !waiting.empty()) text += fmt::format("c {}\n", take(waiting));
        if (random() % 40 == 0) text += "e\n";
    }
    while (!waiting.empty()) text += fmt::format("c {}\n", take(waiting));
    while (!live.empty()) text += fmt::format("f {}\n", take(live));
    return script(text + "e\n");
}

std::string account_of(const Result& result) {
    std::string out;
    for (const Metric& metric : result.metrics)
        out += metric.key + ' ' + std::visit([](auto value) { return fmt::format("{}", value); }, metric.value) + '\n';
    for (const DriverCall& call : result.driver_calls)
        out +=
            fmt::format("{} {} {} {:#x} {}\n", call.op, name(call.kind), call.bytes, call.address, call.stream.value);
    for (const Oom& oom : result.ooms) out += fmt::format("oom {} {}\n", oom.op, oom.requested);
    return out;
}

template <class Check>
void for_each_policy(Check check) {
    for (const PolicyInfo& info : policies()) {
        INFO("policy " << info.name);
        check(info);
    }
}

}  // namespace

TEST_CASE("there are policies, each with a name of its own", "[contract][policy]") {
    REQUIRE(policies().size() >= 2);
    std::set<std::string_view> names;
    for (const PolicyInfo& info : policies()) names.insert(info.name);
    CHECK(names.size() == policies().size());
}

TEST_CASE("every policy says what it is, where it comes from and what its parameters mean", "[contract][policy]") {
    for_each_policy([](const PolicyInfo& info) {
        CHECK_FALSE(info.name.empty());
        CHECK_FALSE(info.summary.empty());
        CHECK_FALSE(info.reference.empty());
        REQUIRE(info.make != nullptr);
        std::set<std::string_view> names;
        for (const PolicyParameter& parameter : info.parameters) {
            CAPTURE(parameter.name);
            CHECK_FALSE(parameter.name.empty());
            CHECK_FALSE(parameter.unit.empty());
            CHECK_FALSE(parameter.description.empty());
            CHECK(names.insert(parameter.name).second);
            const bool required =
                std::find(info.required.begin(), info.required.end(), parameter.name) != info.required.end();
            CHECK((required || !parameter.default_value.empty()));
        }
        for (const std::string_view required : info.required) CHECK(names.contains(required));
    });
}

TEST_CASE("every line of a policy's summary fits the terminal", "[contract][policy]") {
    for_each_policy([](const PolicyInfo& info) {
        for (const std::string& line : split(std::string(info.summary), '\n')) CHECK(line.size() <= 100);
    });
}

TEST_CASE("every policy's defaults can be written out", "[contract][policy]") {
    for_each_policy([](const PolicyInfo& info) {
        PolicySpec spec = spec_of(info);
        spec.given = spec.all_parameters();
        HostDevice device({});
        CHECK(spec.info->make(spec.given, {device, {}, {}}) != nullptr);
        CHECK_NOTHROW(parse_policy_spec(spec.label(), policies()));
        if (info.advise) CHECK(info.advise(spec_of(info).given, Limits{kGiB, {}}).empty());
    });
}

TEST_CASE("every policy serves a random program under the auditor", "[contract][policy]") {
    for_each_policy([](const PolicyInfo& info) {
        for (const unsigned seed : {1u, 2u, 3u}) {
            CAPTURE(seed);
            Playback play(program(seed, 400), maker(info));
            play.run();
            CHECK(describe(play.auditor.findings()) == "");
            CHECK(play.outcome.ooms == 0);
            CHECK(play.policy->stats().active.all.current == 0);
        }
    });
}

TEST_CASE("every policy keeps to the card's capacity and to a memory limit, and out of memory is a value after which it "
          "goes on",
    "[contract][policy]") {
    const bool on_a_card = GENERATE(true, false);
    const auto limits = [&](Bytes bytes) { return on_a_card ? Limits{bytes, {}} : Limits{{}, bytes}; };
    for_each_policy([&](const PolicyInfo& info) {
        // Large enough for the arenas that some policies get at once.
        constexpr Bytes kCapacity = 3 * kGiB;
        Playback play(script("a 0 900M; a 1 5G; a 2 20M; f 0; a 3 700M; f 3; f 2"), maker(info),
            Playback::within(info, limits(kCapacity)));
        play.run();
        CHECK(describe(play.auditor.findings()) == "");
        REQUIRE(play.placements.size() == 4);
        CHECK(play.placements[0]);
        CHECK_FALSE(play.placements[1]);
        CHECK(play.placements[2]);
        CHECK(play.placements[3]);
        CHECK(play.policy->stats().num_ooms == 1);

        constexpr Bytes kTight = 200 * kMiB;
        Playback random(program(4, 300), maker(info), Playback::within(info, limits(kTight)));
        random.run();
        CHECK(describe(random.auditor.findings()) == "");
        CHECK(random.policy->stats().num_ooms == random.outcome.ooms);
    });
}

TEST_CASE(
    "every policy returns what it caches when nothing is in use and the program asks for it", "[contract][policy]") {
    // A policy that keeps an arena by design belongs here with its reason.
    const std::set<std::string_view> keeps_memory{
        "rmm-pool", "rmm-arena", "rmm-binning",  // nothing goes back when asked, before they are destroyed
        "bfc",                                   // gives regions back to serve a request, never when asked
        "vmm-pool",                              // the same, unless trim=on_empty_cache
    };
    for_each_policy([&](const PolicyInfo& info) {
        Playback play(program(5, 300), maker(info));
        play.run();
        if (!keeps_memory.contains(info.name)) CHECK(play.policy->stats().reserved_bytes.all.current == 0);
        CHECK(play.policy->stats().reserved_bytes.all.peak > 0);
    });
}

TEST_CASE("every policy can begin in the middle of a recording, also where not all of it fits", "[contract][policy]") {
    const Recording recording = read_recording(source_dir() + "/traces/samples/gpt2_varlen.ring.pickle.gz");
    const Trace& trace = recording.traces.front();
    REQUIRE_FALSE(trace.initial.segments.empty());
    for_each_policy([&](const PolicyInfo& info) {
        for (const std::optional<Bytes> capacity : {std::optional<Bytes>{}, std::optional(6 * kGiB)})
            for (const Frees frees : {Frees::requested, Frees::completed}) {
                RunOptions options;
                options.limits.capacity = capacity;
                options.frees = frees;
                options.audit = true;
                options.adopt_start = false;
                CHECK(describe(run_policy(trace, spec_of(info), options).audit_findings) == "");
            }
    });
}

TEST_CASE("every policy's two runs of a trace are the same", "[contract][policy]") {
    for_each_policy([](const PolicyInfo& info) {
        RunOptions options;
        options.limits.capacity = 300 * kMiB;
        const Trace trace = program(6, 400);
        CHECK(account_of(run_policy(trace, spec_of(info), options)) ==
              account_of(run_policy(trace, spec_of(info), options)));
    });
}

TEST_CASE("no policy looks at recorded addresses", "[contract][policy]") {
    Recording recording = read_recording(source_dir() + "/traces/samples/streams.default.pickle.gz");
    const Trace& trace = recording.traces.front();
    Trace shifted = trace;
    for (Buffer& buffer : shifted.buffers) buffer.recorded_address += Address{3} << 30;
    for (SegmentEvent& event : shifted.segment_events) event.address += Address{3} << 30;
    shifted.final.reset();
    for_each_policy([&](const PolicyInfo& info) {
        RunOptions options;
        options.limits.capacity = 220 * kMiB;
        CHECK(account_of(run_policy(trace, spec_of(info), options)) ==
              account_of(run_policy(shifted, spec_of(info), options)));
    });
}

TEST_CASE("every policy refuses values it cannot use as wrong usage", "[contract][policy]") {
    for_each_policy([](const PolicyInfo& info) {
        HostDevice device({});
        for (const PolicyParameter& parameter : info.parameters) {
            CAPTURE(parameter.name);
            PolicySpec spec = spec_of(info);
            std::erase_if(spec.given, [&](const auto& given) { return given.first == parameter.name; });
            spec.given.emplace_back(parameter.name, "nonsense");
            try {
                spec.info->make(spec.given, {device, {}, {}});
                FAIL_CHECK("accepted");
            } catch (const Error& error) {
                CHECK(error.code() == ErrorCode::usage);
            }
        }
    });
}
