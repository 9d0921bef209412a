#include "tests/support/scenario.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "lib/trace/trace_builder.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "traces/text.hpp"

namespace fragsim::test {
namespace {

// The thresholds of PyTorch's allocator and what lies beside them.
rc::Gen<Bytes> sizes() {
    const auto near = rc::gen::map(
        rc::gen::tuple(rc::gen::element<Bytes>(512, kMiB, 2 * kMiB, 10 * kMiB, 20 * kMiB, 24 * kMiB, 30 * kMiB),
            rc::gen::element<Bytes>(0, -1, 1, -512, 512, -kMiB + 1, kMiB, -100'000)),
        [](const std::tuple<Bytes, Bytes>& t) { return std::max<Bytes>(1, std::get<0>(t) + std::get<1>(t)); });
    return rc::gen::weightedOneOf<Bytes>({{4, near}, {2, rc::gen::inRange<Bytes>(1, 4096)},
        {2, rc::gen::inRange<Bytes>(1, 3 * kMiB)}, {1, rc::gen::inRange<Bytes>(1, 64 * kMiB)}});
}

rc::Gen<Command> commands() {
    const auto kind =
        rc::gen::weightedElement<Command::Kind>({{10, Command::alloc}, {6, Command::free}, {3, Command::free_later},
            {3, Command::complete}, {1, Command::record_stream}, {1, Command::empty_cache}, {1, Command::synchronize}});
    return rc::gen::build<Command>(rc::gen::set(&Command::kind, kind),
        rc::gen::set(&Command::pick, rc::gen::inRange(0u, 64u)), rc::gen::set(&Command::size, sizes()),
        rc::gen::set(&Command::stream, rc::gen::weightedElement<std::uint16_t>({{6, 0}, {2, 1}, {1, 2}})));
}

// Each setting is given now and then.
rc::Gen<Parameters> settings() {
    static const std::vector<std::pair<const char*, std::vector<const char*>>> kValues{
        {"max_split_size_mb", {"20", "24", "64"}}, {"max_non_split_rounding_mb", {"20", "22", "40"}},
        {"garbage_collection_threshold", {"0.2", "0.6", "0.9"}},
        {"roundup_power2_divisions", {"2", "4", "8", "[1:4,8:2,16:0,>:1]"}}, {"large_segment_size_mb", {"12", "16"}},
        {"per_process_memory_fraction", {"0.5", "0.71"}}, {"throw_on_cudamalloc_oom", {"True"}},
        {"torch_version", {"2.11", "2.13"}},
        // of the others
        {"arena_bytes", {"4MiB", "64MiB", "1GiB"}}, {"growth", {"none", "segment"}}, {"align_bytes", {"256", "4096"}},
        {"min_split_bytes", {"1MiB"}}, {"sl_log2", {"2"}}, {"exact_class_scan", {"true"}},
        {"min_block_bytes", {"256", "64KiB"}}, {"max_arenas", {"1", "2"}}, {"arena_doubling", {"true"}},
        {"tail_trim", {"true"}}, {"lazy", {"svr4"}}, {"release_empty", {"true"}}, {"huge_direct", {"false"}},
        {"allow_growth", {"false"}}, {"max_internal_fragmentation_bytes", {"1MiB"}}, {"garbage_collection", {"false"}},
        {"backpedal_once", {"true"}}, {"initial_pool_bytes", {"16MiB"}}, {"maximum_pool_bytes", {"128MiB"}},
        {"min_size_exponent", {"9"}}, {"max_size_exponent", {"18", "20"}}, {"blocks_per_chunk", {"4"}},
        {"block_bytes", {"2MiB", "4MiB", "32MiB"}}, {"remap", {"off", "release_then_create"}},
        {"trim", {"on_empty_cache"}}, {"variant", {"released"}}, {"frag_limit_bytes", {"2MiB", "4MiB"}},
        {"small_limit_bytes", {"0", "3MiB"}}, {"stitch_limit", {"0", "1", "3"}}, {"defrag_level", {"1", "2"}},
        {"release_threshold_bytes", {"64MiB"}}, {"gpu_progress", {"never"}}, {"max_size_bytes", {"96MiB"}},
        {"reuse_allow_opportunistic", {"false"}}, {"reuse_allow_internal_dependencies", {"false"}},
        {"trim_retry", {"true"}}};
    return rc::gen::map(rc::gen::container<std::vector<std::uint32_t>>(kValues.size(), rc::gen::inRange(0u, 16u)),
        [](const std::vector<std::uint32_t>& draws) {
            Parameters given;
            for (std::size_t i = 0; i < draws.size(); ++i)
                if (const auto& [key, values] = kValues[i]; draws[i] > 0 && draws[i] <= values.size())
                    given.emplace_back(key, values[draws[i] - 1]);
            return given;
        });
}

const char* value_for_required(std::string_view parameter) {
    if (parameter == "max_split_size_mb") return "32";
    throw std::logic_error("tests/support/scenario.cpp needs a value for the parameter " + std::string(parameter));
}

}  // namespace

rc::Gen<Scenario> scenarios() {
    const auto limits = rc::gen::element<Limits>(Limits{}, Limits{40 * kMiB, {}}, Limits{100 * kMiB, {}},
        Limits{200 * kMiB, {}}, Limits{{}, 40 * kMiB}, Limits{{}, 100 * kMiB}, Limits{{}, 200 * kMiB},
        Limits{100 * kMiB, 90 * kMiB});
    return rc::gen::build<Scenario>(
        rc::gen::set(&Scenario::policy, rc::gen::inRange<std::size_t>(0, policies().size())),
        rc::gen::set(&Scenario::settings, settings()), rc::gen::set(&Scenario::limits, limits),
        rc::gen::set(&Scenario::commands, rc::gen::container<std::vector<Command>>(commands())));
}

Trace trace_of(const Scenario& scenario) {
    TraceBuilder builder;
    builder.stream(0);
    std::vector<BufferId> live, waiting;
    const auto take = [](std::vector<BufferId>& from, std::uint32_t pick) {
        const auto chosen = from.begin() + static_cast<std::ptrdiff_t>(pick % from.size());
        const BufferId buffer = *chosen;
        from.erase(chosen);
        return buffer;
    };
    for (const Command& command : scenario.commands) {
        switch (command.kind) {
            case Command::alloc:
                live.push_back(builder.add_buffer(command.size, 0, builder.stream(command.stream)));
                builder.add(EventKind::alloc, live.back().value);
                break;
            case Command::free:
                if (!live.empty()) builder.add(EventKind::free, take(live, command.pick).value);
                break;
            case Command::free_later:
                if (live.empty()) break;
                waiting.push_back(take(live, command.pick));
                builder.add(EventKind::free_requested, waiting.back().value);
                break;
            case Command::complete:
                if (!waiting.empty()) builder.add(EventKind::free_completed, take(waiting, command.pick).value);
                break;
            case Command::record_stream:
                if (!live.empty())
                    builder.add_stream_use(live[command.pick % live.size()], builder.stream(command.stream));
                break;
            case Command::empty_cache: builder.add(EventKind::empty_cache); break;
            case Command::synchronize: builder.add(EventKind::synchronize, Event::kAllStreams); break;
        }
    }
    // The text form has no free that never completes.
    for (const BufferId buffer : waiting) builder.add(EventKind::free_completed, buffer.value);
    return builder.finish();
}

PolicySpec spec_of(const Scenario& scenario) {
    const PolicyInfo& info = policies()[scenario.policy % policies().size()];
    PolicySpec spec{&info, {}};
    for (const auto& [key, value] : scenario.settings)
        if (std::any_of(info.parameters.begin(), info.parameters.end(),
                [&, &key = key](const PolicyParameter& p) { return p.name == key; }))
            spec.given.emplace_back(key, value);
    for (const std::string_view required : info.required)
        if (std::none_of(
                spec.given.begin(), spec.given.end(), [&](const auto& given) { return given.first == required; }))
            spec.given.emplace_back(required, value_for_required(required));
    return spec;
}

std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
    out << "\n# --policy '" << spec_of(scenario).label() << "'";
    if (scenario.limits.capacity) out << " --capacity " << *scenario.limits.capacity;
    if (scenario.limits.memory_limit) out << " --memory-limit " << *scenario.limits.memory_limit;
    return out << '\n' << write_text(trace_of(scenario));
}

void check_property(int cases, const std::function<void(const Scenario&)>& property) {
    const char* set = std::getenv("FRAGSIM_SEED");
    rc::detail::TestParams params;
    params.seed = set ? std::stoull(set) : 1;
    params.maxSuccess = cases;
    params.maxSize = 200;  // commands
    const auto result = rc::detail::checkTestable([&] { property(*scenarios()); }, rc::detail::TestMetadata{}, params);
    std::ostringstream said;
    rc::detail::printResultMessage(result, said);
    INFO("seed " << params.seed << ": " << said.str());
    CHECK(result.is<rc::detail::SuccessResult>());
}

}  // namespace fragsim::test
