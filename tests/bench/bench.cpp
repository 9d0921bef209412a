// Speed, beside a peer in the same run: loading a snapshot against CPython's pickle.load of the same uncompressed file,
// replay with metrics on, the memory of a whole `inspect`; then every policy against `caching` on the last trace.
// Prints tables; asserts nothing.
//
// usage: fragsim_bench TRACE... (PyTorch snapshots, compressed or not)
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lib/core/sizes.hpp"
#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "traces/registry.hpp"

namespace {

using namespace fragsim;
using Clock = std::chrono::steady_clock;

constexpr int kRuns = 9;

template <class Work>
double median_seconds(Work work) {
    std::vector<double> seconds;
    for (int run = 0; run < kRuns; ++run) {
        const auto start = Clock::now();
        work();
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
    return seconds[kRuns / 2];
}

void decompress(const std::string& from, const std::string& to) {
    Input input(from);
    std::ofstream out(to, std::ios::binary);
    while (const std::size_t got = input.fill(1)) {
        out.write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(got));
        input.advance(got);
    }
}

// Median of the same number of loads by CPython; 0 without python3.
double python_seconds(const std::string& path) {
    const std::string command = fmt::format(
        "python3 -c \"import pickle,statistics,time,gc\n"
        "t=[]\n"
        "for _ in range({}):\n"
        " gc.collect(); s=time.perf_counter()\n"
        " with open('{}','rb') as f: x=pickle.load(f)\n"
        " t.append(time.perf_counter()-s); del x\n"
        "print(statistics.median(t))\"",
        kRuns, path);
    std::FILE* pipe = popen(command.c_str(), "r");
    double seconds = 0;
    if (pipe && std::fscanf(pipe, "%lf", &seconds) != 1) seconds = 0;
    if (pipe) pclose(pipe);
    return seconds;
}

// Largest resident set of `fragsim inspect`, by the operating system's account. A child begins with its parent's, so
// this is asked while the parent is still small.
Bytes inspect_memory(const std::string& path) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (!std::freopen("/dev/null", "w", stdout)) _exit(1);
        execl(FRAGSIM_PROGRAM, FRAGSIM_PROGRAM, "inspect", path.c_str(), static_cast<char*>(nullptr));
        _exit(1);
    }
    int status = 0;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    return usage.ru_maxrss * kKiB;
}

const Trace& largest_trace(const Recording& recording) {
    return *std::max_element(
        recording.traces.begin(), recording.traces.end(), [](const Trace& a, const Trace& b) { return a.ops < b.ops; });
}

double best_replay_seconds(const Trace& trace, const PolicySpec& spec, int runs) {
    double best = 1e9;
    for (int run = 0; run < runs; ++run) best = std::min(best, run_policy(trace, spec, {}).replay_seconds);
    return best;
}

// Each beside a run of `caching` of the same moment.
void compare_policies(const Trace& trace) {
    fmt::print("\n{:<28}{:>12}{:>16}\n", "policy", "Mop/s", "of caching's");
    std::vector<std::string> warnings;
    const PolicySpec caching = policy_from_alloc_conf("", warnings);
    for (const PolicyInfo& info : policies()) {
        PolicySpec spec{&info, {}};
        for (const std::string_view key : info.required) spec.given.emplace_back(key, "128");
        double own = 1e9, peer = 1e9;
        for (int run = 0; run < kRuns; ++run) {
            peer = std::min(peer, best_replay_seconds(trace, caching, 1));
            own = std::min(own, best_replay_seconds(trace, spec, 1));
        }
        fmt::print("{:<28}{:>12.1f}{:>16.2f}\n", spec.label(), trace.ops / own / 1e6, peer / own);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string plain =
        (std::filesystem::temp_directory_path() / fmt::format("fragsim_bench.{}.pickle", getpid())).string();
    fmt::print("{:<28}{:>9}{:>9}{:>9}{:>9}{:>7}{:>10}{:>10}{:>14}\n", "trace", "size", "ops", "load", "python", "ratio",
        "peak mem", "budget", "replay Mop/s");
    std::vector<Bytes> memory;
    for (int i = 1; i < argc; ++i) {
        decompress(argv[i], plain);
        memory.push_back(inspect_memory(plain));
    }
    for (int i = 1; i < argc; ++i) {
        decompress(argv[i], plain);
        const Recording recording = read_recording(plain);
        const Trace& trace = largest_trace(recording);
        const double load = median_seconds([&] { read_recording(plain); });
        const double python = python_seconds(plain);

        std::vector<std::string> warnings;
        const double replay = best_replay_seconds(trace, policy_from_alloc_conf("", warnings), 10 * kRuns);

        const auto size = static_cast<Bytes>(std::filesystem::file_size(plain));
        fmt::print("{:<28}{:>9}{:>9}{:>6.1f} ms{:>6.1f} ms{:>6.1f}x{:>10}{:>10}{:>14.1f}\n",
            std::filesystem::path(argv[i]).filename().string(), format_size(size), trace.ops, 1e3 * load, 1e3 * python,
            python / load, format_size(memory[static_cast<std::size_t>(i) - 1]), format_size(size + 64 * trace.ops),
            trace.ops / replay / 1e6);
    }
    if (argc > 1) compare_policies(largest_trace(read_recording(plain)));
    std::filesystem::remove(plain);
    return 0;
}
