#include "tests/support/playback.hpp"

#include <fmt/format.h>

#include <map>

#include "lib/replay/lifespans.hpp"
#include "policies/registry.hpp"

namespace fragsim::test {

Playback::Playback(Trace played, const MakePolicy& make, const Options& options)
    : trace(std::move(played)), host({.capacity = options.device_memory}), device(host, CostModel::h200()),
      lifespans(lifespans_of(trace)), policy(make({device, options.limits, trace.pools, &lifespans})),
      auditor(trace, *policy, device, options.audited),
      options_(options) {}

void Playback::run() {
    ReplayObserver* observers[] = {&auditor, this};
    outcome = replay(trace, *policy, device, observers, {options_.on_oom});
    auditor.finish();
}

MakePolicy policy(const std::string& text) {
    const PolicySpec spec = parse_policy_spec(text, policies());
    return [spec](const PolicyContext& context) { return spec.info->make(spec.given, context); };
}

namespace {

// Visits every call with the number of its segment; -1 for calls on address ranges.
template <class Visit>
void name_segments(const std::vector<DriverCall>& calls, Visit visit) {
    std::map<Address, int> names;
    int next = 0;
    for (const DriverCall& call : calls) {
        if (call.kind == DriverCallKind::malloc) names[call.address] = next++;
        const bool segment = call.kind == DriverCallKind::malloc || call.kind == DriverCallKind::free;
        visit(call, segment ? names[call.address] : -1);
    }
}

std::string describe_size(Bytes bytes) {
    return bytes % kMiB == 0 ? fmt::format("{}M", bytes / kMiB) : fmt::format("{}", bytes);
}

}  // namespace

std::string describe(const std::vector<DriverCall>& calls) {
    std::string out;
    name_segments(calls, [&](const DriverCall& call, int segment) {
        out += out.empty() ? "" : " ";
        if (call.kind == DriverCallKind::malloc)
            out += fmt::format("S{}:{}", segment, describe_size(call.bytes));
        else if (call.kind == DriverCallKind::free)
            out += fmt::format("-S{}", segment);
        else
            out += fmt::format("{}:{:#x}+{}", name(call.kind), call.address, describe_size(call.bytes));
    });
    return out;
}

std::string describe(const MemoryPicture& picture, const std::vector<DriverCall>& calls) {
    std::map<Address, int> names;
    name_segments(calls, [&](const DriverCall& call, int segment) {
        if (call.kind == DriverCallKind::malloc) names[call.address] = segment;
    });
    std::map<std::string, std::string> segments;
    for (const SegmentPicture& segment : picture.segments) {
        std::string blocks;
        for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
            const BlockPicture& block = picture.blocks[i];
            const char state = block.state == BlockState::inactive           ? 'F'
                               : block.state == BlockState::active_allocated ? 'A'
                                                                             : 'P';
            blocks += fmt::format("{}{}{}", blocks.empty() ? "" : " ", block.size, state);
        }
        const auto named = names.find(segment.address);
        segments[named == names.end() ? fmt::format("{:#x}", segment.address) : fmt::format("S{}", named->second)] =
            blocks;
    }
    std::string out;
    for (const auto& [name, blocks] : segments) out += fmt::format("{}{}[{}]", out.empty() ? "" : " ", name, blocks);
    return out;
}

std::string describe(const std::vector<AuditFinding>& findings) {
    constexpr std::size_t kShown = 5;
    std::string out;
    for (std::size_t i = 0; i < findings.size() && i < kShown; ++i)
        out += fmt::format("op {}: {}: {}\n", findings[i].op, name(findings[i].rule), findings[i].what);
    if (findings.size() > kShown) out += fmt::format("and {} more\n", findings.size() - kShown);
    return out;
}

}  // namespace fragsim::test
