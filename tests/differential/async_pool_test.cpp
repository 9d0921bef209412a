// The async pool against recorded programs on a real cudaMallocAsync pool: every pointer, relative to the first, and
// the reserved bytes after every call. A few of the programs are bundled (tests/data), all of them are in
// ../shared/truth/async.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "lib/device/host_device.hpp"
#include "lib/report/format.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/reference_policies.hpp"
#include "tests/support/truth.hpp"
#include "tests/support/written_table.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// What a file's name says; spec of the policy that goes with it. See truth/README.md.
struct RecordedProgram {
    std::string spec;
    bool synchronizes = false;  // the stream, after every call
    std::string kind, shape;    // for the table
};

// None: kernels ran in between and mattered, so what the GPU had passed is not known.
std::optional<RecordedProgram> read_name(const std::string& name) {
    const auto words = split(name, '.');
    if (words[1] == "det1")
        return RecordedProgram{
            "async-pool:release_threshold_bytes=1099511627776", false, "one stream, as it comes", "mixed"};
    const bool second = words[0] == "async2";  // async2.THRESHOLD.STREAMS.SHAPE.PROGRESS.SEED, async.….SHAPE[.REUSE]
    const std::string threshold = words[1], streams = words[2], shape = words[3];
    const std::string progress = second ? words[4] : shape == "busy" ? "busy" : "free";
    std::string reuse = words.size() > (second ? 5u : 4u) ? words[second ? 5 : 4] : "111";
    if (reuse.size() != 3) reuse = "111";  // a seed
    if (progress == "busy" && reuse[1] == '1') return {};

    static const std::map<std::string, std::string> kProgress{{"sync", "synchronised after every call"},
        {"sleep", "100 us after every call"}, {"hold", "blocked by a kernel"}, {"free", "as it comes"},
        {"busy", "kernels in between"}};
    RecordedProgram program;
    program.spec = fmt::format("async-pool:release_threshold_bytes={},gpu_progress={}",
        threshold == "max" ? "1099511627776" : threshold, progress == "hold" ? "never" : "idle");
    const char* const flags[] = {
        "reuse_follow_event_dependencies", "reuse_allow_opportunistic", "reuse_allow_internal_dependencies"};
    for (std::size_t i = 0; i < 3; ++i)
        if (reuse[i] == '0') program.spec += fmt::format(",{}=false", flags[i]);
    program.synchronizes = progress == "sync";
    program.shape = shape;
    program.kind = fmt::format("{}, {}",
        streams == "1"   ? "one stream"
        : streams == "2" ? "two streams"
                         : "three streams",
        kProgress.at(progress));
    if (threshold != "max")
        program.kind +=
            threshold == "0" ? ", threshold 0" : fmt::format(", threshold {} MiB", std::stoll(threshold) / kMiB);
    if (reuse == "000") program.kind += ", without reuse across streams";
    if (reuse == "100") program.kind += ", reuse by events only";
    return program;
}

struct Agreement {
    std::int64_t programs = 0, calls = 0, reserved = 0, allocations = 0, pointers = 0;
    std::set<std::string> shapes;
    std::string first;  // difference

    bool exact() const { return reserved == calls && pointers == allocations; }
    void operator+=(const Agreement& other) {
        programs += other.programs, calls += other.calls, reserved += other.reserved;
        allocations += other.allocations, pointers += other.pointers;
        shapes.insert(other.shapes.begin(), other.shapes.end());
        if (first.empty()) first = other.first;
    }
};

std::unique_ptr<Policy> make_policy(const std::string& text, Device& device) {
    const PolicySpec spec = parse_policy_spec(text, policies());
    return spec.info->make(spec.given, {device, {}, {}});
}

Agreement compare(const std::string& path, const RecordedProgram& program, Policy& policy) {
    Agreement sum{1, 0, 0, 0, 0, {program.shape}, {}};
    std::optional<Bytes> recorded_start, start;
    for_each_line(path, [&](const std::string& line) {
        // op,id,bytes,stream,pointer,reserved,used,device_free,ns
        const auto columns = split(line, ',');
        const char op = columns[0][0];
        if (columns[0] == "op") return;
        const BufferId buffer{static_cast<std::uint32_t>(std::stoll(columns[1]))};
        const StreamId stream{static_cast<std::uint32_t>(std::stoul(columns[3]))};
        std::optional<Placement> got;
        switch (op) {
            case 'A': got = policy.allocate(buffer, {std::stoll(columns[2]), stream}); break;
            case 'F': policy.free(buffer); break;
            case 'S': policy.synchronize(stream); break;
            case 'D': policy.synchronize({}); break;
            case 'T': policy.empty_cache(); break;
            default: throw std::logic_error("an op that this test does not know: " + line);
        }
        const Bytes reserved = policy.stats().reserved_bytes.all.current;
        ++sum.calls;
        sum.reserved += reserved == std::stoll(columns[5]);
        std::string place;
        bool in_place = true;
        if (op == 'A') {
            const Bytes recorded = std::stoll(columns[4]);
            if (!start && got) start = static_cast<Bytes>(got->address), recorded_start = recorded;
            const Bytes offset = got ? static_cast<Bytes>(got->address) - *start : -1;
            in_place = offset == recorded - recorded_start.value_or(0);
            place = fmt::format("at +{} instead of +{}, ", offset, recorded - recorded_start.value_or(0));
            ++sum.allocations;
            sum.pointers += in_place;
        }
        if (sum.first.empty() && (!in_place || reserved != std::stoll(columns[5])))
            sum.first = fmt::format("{}: call {}: {}: {}reserved {}", path, sum.calls, line, place, reserved);
        if (program.synchronizes && op != 'D' && op != 'T') policy.synchronize(stream);
    });
    return sum;
}

Agreement compare(const std::string& path, const RecordedProgram& program) {
    HostDevice device({});
    return compare(path, program, *make_policy(program.spec, device));
}

std::string stem(const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    return name.substr(0, name.find(".csv.gz"));
}

std::string row(const std::string& kind, const Agreement& sum) {
    std::string shapes;
    for (const std::string& shape : sum.shapes) shapes += (shapes.empty() ? "" : ", ") + shape;
    return fmt::format("| {} | {} | {} | {} of {} | {} of {} |\n", kind, shapes, sum.programs,
        format_count(sum.reserved), format_count(sum.calls), format_count(sum.pointers), format_count(sum.allocations));
}

// "A4:4@0(5) F4": allocation 4 of 4 units is at unit 0, and 5 units are reserved after it.
void check_vector(const std::string& spec, const std::string& calls, Bytes unit, bool synchronizes) {
    HostDevice device({});
    const auto policy = make_policy(spec, device);
    std::optional<Address> start;
    std::istringstream words(calls);
    for (std::string word; words >> word;) {
        INFO(word);
        std::istringstream text(word.substr(1));
        std::uint32_t id = 0;
        Bytes size = 0, place = 0, reserved = 0;
        char colon = 0, at = 0, bracket = 0;
        text >> id >> colon >> size >> at >> place >> bracket >> reserved;
        if (word[0] == 'A') {
            const auto got = policy->allocate({id}, {size * unit, {0}});
            REQUIRE(got);
            if (!start) start = got->address;
            CHECK(static_cast<Bytes>(got->address - *start) == place * unit);
            if (bracket != 0) CHECK(policy->stats().reserved_bytes.all.current == reserved * unit);
        } else {
            policy->free({id});
        }
        if (synchronizes) policy->synchronize(StreamId{0});
    }
}

const char* const kKeep = "async-pool:release_threshold_bytes=1099511627776";

}  // namespace

TEST_CASE(
    "the async pool gives the pointers and the reserved bytes of bundled recordings", "[differential][async-pool]") {
    int programs = 0;
    for (const auto& file : std::filesystem::directory_iterator(source_dir() + "/tests/data")) {
        const std::string name = stem(file.path());
        if (!name.starts_with("async")) continue;
        const auto program = read_name(name);
        REQUIRE(program);
        const Agreement policy = compare(file.path().string(), *program);
        INFO(policy.first);
        CHECK(policy.exact());
        CHECK(policy.calls > 1000);
        HostDevice device({});
        const Agreement reference =
            compare(file.path().string(), *program, *reference_as_policy(program->spec, {}, device));
        INFO("the reference: " << reference.first);
        CHECK(reference.exact());
        ++programs;
    }
    CHECK(programs >= 3);
}

TEST_CASE("the async pool gives the test vectors of its rule", "[differential][async-pool]") {
    check_vector(kKeep,
        "A0:3@0(3) A1:2@3(5) F1 F0 A4:4@0(5) F4 A6:4@0(5) F6 A9:1@0(5) A10:1@1(5) F9 A12:3@2(5) A13:3@5(7) A14:2@8(9) "
        "A15:4@10(13) F13 A17:4@14(14) A18:4@18(18) A19:2@5(20) A20:4@22(24) F19 A22:3@5(25) F14 F10 A25:2@8(25) F18 "
        "F20 "
        "A28:4@18(25) A29:1@0(25) A30:3@22(25) A31:4@25(28) F12 A33:4@1(29)",
        32 * kMiB, true);
    check_vector("async-pool:gpu_progress=idle",
        "A0:3@0 A1:2@3 F1 F0 A4:4@0 F4 A6:4@0 A7:6@4 A8:3@10 A9:1@13 F9 F6 F7 A13:4@0 F8 A15:8@4 F13 A17:4@0 A18:4@12 "
        "A19:2@16 A20:4@18 F15 A22:3@4",
        512, false);
    check_vector("async-pool:gpu_progress=never",
        "A0:3@0 A1:2@3 F1 F0 A4:4@0 F4 A6:4@0 A7:6@5 A8:3@11 A9:1@4 F9 F6 F7 A13:4@0 F8 A15:8@4 F13 A17:4@0 A18:4@14 "
        "A19:2@12 A20:4@18 F15 A22:3@4",
        512, false);
}

TEST_CASE("policies/README.md says how exact the async pool is", "[differential][async-pool][written][shared]") {
    const auto folder = shared_file("truth/async");
    if (!folder) return;
    std::map<std::string, Agreement> kinds;
    Agreement total;
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(*folder))
        if (file.path().string().ends_with(".csv.gz")) files.push_back(file.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
        const auto program = read_name(stem(file));
        if (!program) continue;
        const Agreement sum = compare(file.string(), *program);
        INFO(program->spec << "\n" << sum.first);
        CHECK(sum.exact());
        kinds[program->kind] += sum;
        total += sum;
    }
    std::string table =
        "| programs | shapes | files | reserved bytes equal after calls | pointers equal of allocations |\n"
        "| --- | --- | --- | --- | --- |\n";
    for (const auto& [kind, sum] : kinds) table += row(kind, sum);
    total.shapes.clear();
    table += row("**all**", total);

    check_written_table("policies/README.md", "async pool", table);
}
