// The peer of a replay on a GPU: PyTorch's own caching allocator, driven by the ops of traces in plain text form and
// timed op by op; one JSON document on stdout. It shares no code with fragsim; build.sh builds it and says how to run
// it. A free takes effect at its line c, or at its line f if it has none, as in `fragsim replay --frees completed`;
// lines r and s are left out. The calls are raw_alloc_with_stream and raw_delete, the least that a program can pay:
// `allocate` looks the current stream up and wraps the pointer besides. Every run starts on an emptied cache. The first
// is not timed but asks the statistics after every op whether the driver was called, which sorts the times of the runs
// after it; these come in pairs, a clock around every op, then one around the whole. "like_first" counts the runs whose
// statistics all equal the first run's, so that the sorting is theirs too.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using std::to_string;
using Clock = std::chrono::steady_clock;
using Times = std::vector<std::int64_t>;  // nanoseconds
using Torch = c10::cuda::CUDACachingAllocator::CUDAAllocator;

// What an op is; what an allocation is shows in the first run.
enum Kind { alloc_hit, alloc_driver, alloc_oom, free_op, empty_cache, skipped };
constexpr std::array<const char*, 5> kKindNames{"alloc_hit", "alloc_driver", "alloc_oom", "free", "empty_cache"};

struct Op {
    Kind kind;
    std::uint32_t buffer;
    cudaStream_t stream;
    std::size_t bytes;
};

struct Program {
    std::vector<Op> ops;
    std::uint32_t buffers = 0, left_out = 0;      // left_out: lines r and s
    std::map<std::string, cudaStream_t> streams;  // 0 is the default stream, each other one is of its own
};

Program read_program(const std::string& path) {
    Program program;
    std::map<std::string, std::size_t> last_op;  // of an id
    std::ifstream file(path);
    TORCH_CHECK(file, path, ": cannot be read");
    std::string line;
    for (std::size_t number = 1; std::getline(file, line); ++number) {
        std::string op, id, stream = "0";
        std::size_t bytes = 0;
        std::istringstream words(line);
        if (!(words >> op) || op[0] == '#' || op == "m") continue;
        words >> id;
        const auto found = last_op.find(id);
        const bool known = found != last_op.end(), live = known && program.ops[found->second].kind == alloc_hit;
        if (op == "a" && !live && words >> bytes && bytes > 0) {
            words >> stream;
            const auto [place, is_new] = program.streams.emplace(stream, nullptr);
            if (is_new && stream != "0") C10_CUDA_CHECK(cudaStreamCreate(&place->second));
            last_op[id] = program.ops.size();
            program.ops.push_back({alloc_hit, program.buffers++, place->second, bytes});
        } else if (known && op == (live ? "f" : "c")) {
            const std::size_t last = std::exchange(found->second, program.ops.size());
            if (!live) program.ops[last].kind = skipped;
            program.ops.push_back({free_op, program.ops[last].buffer, nullptr, 0});
        } else if (op == "e") {
            program.ops.push_back({empty_cache, 0, nullptr, 0});
        } else {
            TORCH_CHECK(op == "r" || op == "s", path, ":", number, ": cannot be driven: ", line);
            ++program.left_out;
        }
    }
    std::erase_if(program.ops, [](const Op& op) { return op.kind == skipped; });
    return program;
}

std::int64_t since(Clock::time_point start) { return std::chrono::nanoseconds(Clock::now() - start).count(); }

enum class Watch { driver_calls, ops, whole };

// One run from an emptied cache to the trace's end, which empties it again. Watch::ops needs a place for each op in
// `times`, Watch::whole one; Watch::driver_calls instead writes into `program` what each allocation turns out to be.
template <Watch watch>
auto drive(Torch& torch, Program& program, std::int64_t* times) {
    std::vector<void*> pointers(program.buffers + std::size_t{1});
    torch.resetPeakStats(0);
    torch.resetAccumulatedStats(0);
    std::int64_t calls = 0;  // of the driver
    const Clock::time_point start = Clock::now();
    for (Op& op : program.ops) {
        void*& pointer = pointers[op.buffer];
        const Clock::time_point op_start = watch == Watch::ops ? Clock::now() : start;
        if (op.kind == free_op) {
            torch.raw_delete(pointer);
        } else if (op.kind == empty_cache) {
            torch.emptyCache();
        } else if (op.kind != skipped) {
            try {
                pointer = torch.raw_alloc_with_stream(op.bytes, op.stream);
            } catch (const c10::OutOfMemoryError&) {  // its free finds no pointer
            }
        }
        if constexpr (watch == Watch::ops) *times++ = since(op_start);
        if constexpr (watch == Watch::driver_calls) {
            const auto now = torch.getDeviceStats(0);
            const auto before =
                std::exchange(calls, now.num_device_alloc + now.num_device_free + now.num_alloc_retries);
            if (op.kind == alloc_hit && calls != before) op.kind = alloc_driver;
            if (!pointer && op.kind != empty_cache) op.kind = op.kind == free_op ? skipped : alloc_oom;
        }
        if (op.kind == free_op) pointer = nullptr;
    }
    if constexpr (watch == Watch::whole) *times = since(start);
    const auto statistics = torch.getDeviceStats(0);
    for (void* pointer : pointers) torch.raw_delete(pointer);
    torch.emptyCache();
    TORCH_CHECK(torch.getDeviceStats(0).reserved_bytes[0].current == 0, "the cache did not get empty");
    return statistics;
}

using Members = std::vector<std::pair<std::string, std::string>>;  // of a JSON object, values as they are printed
std::string quoted(const std::string& text) { return (std::ostringstream() << std::quoted(text)).str(); }
std::string object(const Members& members) {
    std::string out;
    for (const auto& [key, value] : members) out += (out.empty() ? "" : ",\n") + quoted(key) + ": " + value;
    return '{' + out + '}';
}

// The same ops' times in the runs from `first` to `last`: nearest rank of all of them, and the median run's total.
Members summary(const std::vector<Times>& runs, std::size_t first, std::size_t last) {
    Times all, totals;
    for (std::size_t run = first; run < last; ++run) {
        all.insert(all.end(), runs[run].begin(), runs[run].end());
        totals.push_back(std::accumulate(runs[run].begin(), runs[run].end(), std::int64_t{0}));
    }
    std::sort(all.begin(), all.end());
    std::sort(totals.begin(), totals.end());
    const auto samples = std::ssize(all);
    const auto rank = [&](std::int64_t per_mille) { return to_string(all[(samples * per_mille + 999) / 1000 - 1]); };
    return {{"ops", to_string(samples / std::ssize(totals))}, {"samples", to_string(samples)},
        {"min_ns", to_string(all[0])}, {"p50_ns", rank(500)}, {"p90_ns", rank(900)}, {"p99_ns", rank(990)},
        {"p99.9_ns", rank(999)}, {"max_ns", rank(1000)},
        {"mean_ns", to_string(std::accumulate(all.begin(), all.end(), std::int64_t{0}) / samples)},
        {"total_ns", to_string(totals[totals.size() / 2])}};
}

// As torch.cuda.memory_stats() names them.
Members statistics_members(const auto& of) {
    Members out{{"num_alloc_retries", to_string(of.num_alloc_retries)}, {"num_ooms", to_string(of.num_ooms)},
        {"num_device_alloc", to_string(of.num_device_alloc)}, {"num_device_free", to_string(of.num_device_free)},
        {"num_sync_all_streams", to_string(of.num_sync_all_streams)}};
    const auto add = [&](const std::string& name, const auto& pools) {
        for (std::size_t pool = 0; pool < 3; ++pool) {  // as StatType counts
            const std::string key = name + std::array{".all.", ".small_pool.", ".large_pool."}[pool];
            out.emplace_back(key + "current", to_string(pools[pool].current));
            out.emplace_back(key + "peak", to_string(pools[pool].peak));
            out.emplace_back(key + "allocated", to_string(pools[pool].allocated));
            out.emplace_back(key + "freed", to_string(pools[pool].freed));
        }
    };
    add("requested_bytes", of.requested_bytes), add("allocated_bytes", of.allocated_bytes);
    add("active_bytes", of.active_bytes), add("reserved_bytes", of.reserved_bytes);
    add("inactive_split_bytes", of.inactive_split_bytes), add("inactive_split", of.inactive_split);
    add("allocation", of.allocation), add("active", of.active), add("segment", of.segment);
    return out;
}

std::string measure(Torch& torch, const std::string& path, std::size_t repetitions) {
    Program program = read_program(path);
    const std::size_t ops = program.ops.size();
    Times times(ops * repetitions);
    std::vector<Times> whole(repetitions, Times(1));
    const Members statistics = statistics_members(drive<Watch::driver_calls>(torch, program, nullptr));
    std::size_t like_first = 0;
    for (std::size_t run = 0; run < repetitions; ++run) {
        like_first += statistics_members(drive<Watch::ops>(torch, program, times.data() + run * ops)) == statistics;
        drive<Watch::whole>(torch, program, whole[run].data());
    }
    std::map<std::string, std::vector<Times>> by_name{{"whole", whole}};
    std::string oom_ops;
    std::int64_t op_number = 0;  // allocations and frees count, as in fragsim
    for (std::size_t i = 0; i < ops; ++i) {
        const Kind kind = program.ops[i].kind;
        if (kind == alloc_oom) oom_ops += (oom_ops.empty() ? "" : ", ") + to_string(op_number);
        op_number += kind != empty_cache;
        if (kind == skipped) continue;
        std::vector<Times>& runs = by_name.try_emplace(kKindNames[kind], repetitions).first->second;
        for (std::size_t run = 0; run < repetitions; ++run) runs[run].push_back(times[run * ops + i]);
    }
    Members timed;
    for (const auto& [name, runs] : by_name) {
        timed.emplace_back(name, object(summary(runs, 0, repetitions)));
        timed.emplace_back(name + ".first_half", object(summary(runs, 0, repetitions / 2)));
        timed.emplace_back(name + ".second_half", object(summary(runs, repetitions / 2, repetitions)));
    }
    return object({{"trace", quoted(path)}, {"ops", to_string(op_number)}, {"buffers", to_string(program.buffers)},
        {"streams", to_string(program.streams.size())}, {"left_out", to_string(program.left_out)},
        {"oom_ops", '[' + oom_ops + ']'}, {"like_first", to_string(like_first)}, {"times", object(timed)},
        {"statistics", object(statistics)}});
}

}  // namespace

int main(int count, char** words) try {
    std::map<std::string, std::string> options{{"--alloc-conf", ""}, {"--limit", "null"}, {"--repetitions", "20"}};
    int at = 1;
    for (; at + 1 < count && options.contains(words[at]); at += 2) options[words[at]] = words[at + 1];
    if (at == count || words[at][0] == '-') {
        std::fputs("usage: torch_peer [--alloc-conf STRING] [--limit BYTES] [--repetitions N] TRACE.txt...\n", stderr);
        return 2;
    }
    // c10 reads its settings as early as it is loaded, so they have to be there before the program is.
    const std::string alloc_conf = options["--alloc-conf"], limit = options["--limit"];
    const char* const set = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
    if (std::getenv("PYTORCH_ALLOC_CONF") || alloc_conf != (set ? set : "")) {
        unsetenv("PYTORCH_ALLOC_CONF");  // would be preferred
        setenv("PYTORCH_CUDA_ALLOC_CONF", alloc_conf.c_str(), 1);
        execv("/proc/self/exe", words);
    }
    if (c10::cuda::device_count() == 0) return 77;  // skipped
    cudaDeviceProp device;
    C10_CUDA_CHECK(cudaSetDevice(0));
    C10_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
    c10::cuda::CUDACachingAllocator::init(1);
    Torch& torch = *c10::cuda::CUDACachingAllocator::get();
    // c10 takes the whole bytes of fraction * total; the quarter of a byte keeps rounding from losing one.
    if (limit != "null") torch.setMemoryFraction((std::stod(limit) + 0.25) / double(device.totalGlobalMem), 0);
    const std::size_t repetitions = std::max(2, std::atoi(options["--repetitions"].c_str()) / 2 * 2);  // two halves
    std::vector<Times> clock(1, Times(10000));
    for (std::int64_t& time : clock[0]) time = since(Clock::now());
    std::string results;
    for (; at < count; ++at) results += (results.empty() ? "" : ",\n ") + measure(torch, words[at], repetitions);
    const Members document{{"torch_version", quoted(FRAGSIM_TORCH_VERSION)}, {"backend", quoted(torch.name())},
        {"alloc_conf", quoted(alloc_conf)}, {"limit_bytes", limit}, {"device", quoted(device.name)},
        {"device_bytes", to_string(device.totalGlobalMem)}, {"repetitions", to_string(repetitions)},
        {"clock", object(summary(clock, 0, 1))}, {"results", '[' + results + ']'}};
    std::puts(object(document).c_str());
} catch (const std::exception& error) {
    std::fprintf(stderr, "torch_peer: error: %s\n", error.what());
    return 4;
}
