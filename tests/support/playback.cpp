#include "tests/support/playback.hpp"

#include <fmt/format.h>

#include <map>

#include "policies/registry.hpp"

namespace fragsim::test {

Playback::Playback(Trace played, const MakePolicy& make, const Options& options)
    : trace(std::move(played)), host({options.device_memory, CudaMallocAddresses::Start::fresh}), device(host, CostModel::h200()),
      policy(make({device, options.capacity})), auditor(trace, *policy, device, options.capacity), options_(options) {}

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

// Visits every call with the name of its segment.
template <class Visit>
void name_segments(const std::vector<DriverCall>& calls, Visit visit) {
    std::map<Address, int> names;
    int next = 0;
    for (const DriverCall& call : calls) {
        if (call.kind == DriverCallKind::malloc) names[call.address] = next++;
        visit(call, names[call.address]);
    }
}

}  // namespace

std::string describe(const std::vector<DriverCall>& calls) {
    std::string out;
    name_segments(calls, [&](const DriverCall& call, int name) {
        out += out.empty() ? "" : " ";
        if (call.kind != DriverCallKind::malloc)
            out += fmt::format("-S{}", name);
        else if (call.bytes % kMiB == 0)
            out += fmt::format("S{}:{}M", name, call.bytes / kMiB);
        else
            out += fmt::format("S{}:{}", name, call.bytes);
    });
    return out;
}

std::string describe(const MemoryPicture& picture, const std::vector<DriverCall>& calls) {
    std::map<Address, int> names;
    name_segments(calls, [&](const DriverCall& call, int name) { names[call.address] = name; });
    std::map<int, std::string> segments;
    for (const SegmentPicture& segment : picture.segments) {
        std::string blocks;
        for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
            const BlockPicture& block = picture.blocks[i];
            const char state = block.state == BlockState::inactive ? 'F' : block.state == BlockState::active_allocated ? 'A' : 'P';
            blocks += fmt::format("{}{}{}", blocks.empty() ? "" : " ", block.size, state);
        }
        segments[names.at(segment.address)] = blocks;
    }
    std::string out;
    for (const auto& [name, blocks] : segments) out += fmt::format("{}S{}[{}]", out.empty() ? "" : " ", name, blocks);
    return out;
}

std::string describe(const std::vector<AuditFinding>& findings) {
    std::string out;
    for (const AuditFinding& finding : findings) out += fmt::format("op {}: {}: {}\n", finding.op, name(finding.rule), finding.what);
    return out;
}

}  // namespace fragsim::test
