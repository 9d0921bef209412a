// Recordings of real runs to test against: a part of them in tests/data and traces/samples, all of them in
// ../shared/truth where that exists.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/limits.hpp"
#include "lib/core/types.hpp"
#include "lib/device/logged_device.hpp"
#include "lib/trace/trace.hpp"

namespace fragsim::test {

// The repository's root, for files that tests read.
std::string source_dir();
// A file of ../shared beside the repository (or $FRAGSIM_SHARED); none where there is none, and then the test says so.
std::optional<std::string> shared_file(const std::string& path);

// Every line of a text file, gzip or not.
void for_each_line(const std::string& path, const std::function<void(const std::string& line)>& visit);
std::vector<std::string> split(const std::string& text, char separator);

// A driver call as the recordings write it.
struct RecordedCall {
    char kind;  // A cudaMalloc, F cudaFree, M map, U unmap
    Bytes bytes;
    friend bool operator==(const RecordedCall&, const RecordedCall&) = default;
};
// Reservations of address space are left out: PyTorch does not record them.
std::vector<RecordedCall> recorded_calls(const std::vector<DriverCall>& calls);
std::vector<RecordedCall> recorded_calls(const std::vector<SegmentEvent>& events);

// A generated program and what the real PyTorch allocator did with it (truth/programs.jsonl.gz).
struct Program {
    std::string name, alloc_conf;
    std::optional<Bytes> limit;
    Trace trace;
    std::vector<RecordedCall> calls;
    std::vector<std::uint32_t> oom_ops;
    std::vector<std::pair<std::string, Bytes>> stats;
};
void for_each_program(const std::string& path, const std::function<void(const Program&)>& visit);

// A recorded run driven through the real allocator under other settings (truth/counterfactual.jsonl.gz).
struct Counterfactual {
    std::string trace, alloc_conf;
    std::optional<Bytes> limit;
    std::vector<RecordedCall> calls;
    std::vector<std::uint32_t> oom_ops;  // the first 200
    std::int64_t ooms;
    std::vector<std::pair<std::string, Bytes>> stats;
};
void for_each_counterfactual(const std::string& path, const std::function<void(const Counterfactual&)>& visit);

// A recorded run on a card with nothing but so much left, or under a memory fraction (truth/physical.jsonl.gz).
struct LimitedRun {
    std::size_t line;  // in the file, from 0
    std::string trace, alloc_conf;
    Limits limits;
    std::vector<RecordedCall> calls;  // none for backend:cudaMallocAsync
    std::vector<std::uint32_t> oom_ops;
    std::vector<std::pair<std::string, Bytes>> stats;
};
void for_each_limited_run(const std::string& path, const std::function<void(const LimitedRun&)>& visit);

}  // namespace fragsim::test
