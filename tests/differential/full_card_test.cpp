// Recorded programs on a card with nothing but so much left, and under a memory fraction, against what the real
// allocators of PyTorch did there.
//
// A ballast of one cudaMalloc filled the rest of the card. It takes addresses: the first segments of the process go to
// the free end of its last 32 MiB, which decides between free blocks of equal size later on.
#include <fmt/format.h>

#include <array>
#include <map>
#include <set>
#include <vector>

#include "lib/report/format.hpp"
#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"
#include "tests/support/written_table.hpp"
#include "traces/registry.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

constexpr Bytes kPage = 2 * kMiB;
// The ballast's size is not recorded. Any with 2 to 26 MiB left of its last 32 MiB gives the same calls.
constexpr Bytes kBallast = 32 * kGiB - 8 * kMiB;

Result run(const Trace& trace, const std::string& alloc_conf, Limits limits) {
    CudaMallocAddresses addresses(CudaMallocAddresses::Start::fresh);
    if (limits.capacity) {
        addresses.malloc(kBallast);
        *limits.capacity += kBallast;
    }
    std::vector<std::string> warnings;
    RunOptions options;
    options.address_space = &addresses;
    options.limits = limits;
    options.frees = Frees::completed;  // the recorded programs freed when the original's free completed
    return run_policy(trace, policy_from_alloc_conf(alloc_conf, warnings), options);
}

// What a replay has otherwise than the real allocator; "": nothing.
std::string differences(const LimitedRun& truth, const Result& result) {
    std::string out;
    std::vector<std::uint32_t> ooms;
    for (const Oom& oom : result.ooms) ooms.push_back(oom.op);
    if (ooms != truth.oom_ops) out += fmt::format("{} failures, not {}; ", ooms.size(), truth.oom_ops.size());
    const bool async = truth.alloc_conf == "backend:cudaMallocAsync";  // has no other statistics and no driver calls
    const std::set<std::string> told = async ? std::set<std::string>{"reserved_bytes.all.peak"}
                                             : std::set<std::string>{"num_alloc_retries", "num_ooms", "num_device_alloc",
                                                   "num_device_free", "reserved_bytes.all.peak",
                                                   "allocated_bytes.all.peak", "requested_bytes.all.peak"};
    for (const auto& [key, recorded] : truth.stats)
        if (told.contains(key) && result.count(key) != recorded)
            out += fmt::format("{} {}, not {}; ", key, result.count(key), recorded);
    if (!async && recorded_calls(result.driver_calls) != truth.calls) out += "other driver calls; ";
    return out;
}

struct Cell {
    int runs = 0, exact = 0;
};

struct Score {
    int runs = 0, exact = 0;
    std::set<std::size_t> a_page_less;                                 // lines that are exact with one page of 2 MiB less
    std::map<std::string, std::array<Cell, 3>> by_program;             // native, expandable, cudaMallocAsync
    std::map<std::string, std::vector<std::string>> a_page_less_here;  // their settings, by program
};

std::size_t column_of(const std::string& alloc_conf) {
    return alloc_conf == "backend:cudaMallocAsync" ? 2 : alloc_conf.starts_with("expandable_segments:True") ? 1 : 0;
}

// `find` gives the file of a recorded workload; none: its lines are passed over.
Score compare(const std::string& path, const std::function<std::optional<std::string>(const std::string&)>& find) {
    std::map<std::string, Recording> recordings;
    Score score;
    for_each_limited_run(path, [&](const LimitedRun& truth) {
        if (!recordings.contains(truth.trace)) {
            const auto file = find(truth.trace);
            if (!file) return;
            recordings.emplace(truth.trace, read_recording(*file));
        }
        const Trace& trace = recordings.at(truth.trace).traces.front();
        INFO("line " << truth.line << ": " << truth.trace << " under '" << truth.alloc_conf << "', "
                     << describe(truth.limits));
        ++score.runs;
        Cell& cell = score.by_program[truth.trace][column_of(truth.alloc_conf)];
        ++cell.runs;
        const std::string found = differences(truth, run(trace, truth.alloc_conf, truth.limits));
        if (found.empty()) {
            ++score.exact;
            ++cell.exact;
            return;
        }
        // The card refused the last page, although others got it.
        Limits less = truth.limits;
        if (less.capacity) *less.capacity -= kPage;
        INFO("with all that was usable: " << found);
        CHECK(differences(truth, run(trace, truth.alloc_conf, less)) == "");
        score.a_page_less.insert(truth.line);
        score.a_page_less_here[truth.trace].push_back(
            fmt::format("`{}` at {}", truth.alloc_conf, format_count(*truth.limits.capacity)));
    });
    return score;
}

}  // namespace

TEST_CASE("bundled recordings on a full card: failures, retries, peaks and driver calls of the real allocators",
    "[differential][caching][full-card]") {
    const Score score = compare(source_dir() + "/tests/data/physical.jsonl.gz", [](const std::string& trace) {
        return std::optional(source_dir() + "/traces/samples/" + trace + ".default.pickle.gz");
    });
    CHECK(score.runs == 60);
    CHECK(score.exact == 57);
    CHECK(score.a_page_less == std::set<std::size_t>{11, 26, 27});
}

TEST_CASE("all recordings on a full card and under a memory fraction",
    "[differential][caching][full-card][written][shared]") {
    const auto file = shared_file("truth/physical.jsonl.gz");
    if (!file) return;
    Score score = compare(
        *file, [](const std::string& trace) { return shared_file("truth/workloads/" + trace + ".default.pickle.gz"); });
    CHECK(score.runs == 90);
    CHECK(score.exact == 86);
    CHECK(score.a_page_less == std::set<std::size_t>{11, 24, 41, 42});

    std::string table =
        "| program | native | expandable | cudaMallocAsync | exact with one page less |\n| --- | --- | --- | --- | --- |\n";
    for (const auto& [program, cells] : score.by_program) {
        table += fmt::format("| {} ", program);
        for (const Cell& cell : cells) table += fmt::format("| {} of {} ", cell.exact, cell.runs);
        table += fmt::format("| {} |\n", fmt::join(score.a_page_less_here[program], ", "));
    }
    check_written_table("policies/README.md", "full card", table);
}
