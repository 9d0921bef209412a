// Runs programs of stream-ordered allocations on a real GPU and records what the driver's memory pool did.
//
// A program is a list of CSV rows (op,id,bytes,stream,...); the results are the same rows with pointer, reserved, used
// and time filled in, so a recording is itself a program and can be recorded again under another driver:
//   zcat ../results/async_pool/event.hold.csv.gz | ./record > again.csv
// Each program has a pool of its own. GPU progress is always known: nothing runs but waits at gates, which the program
// closes and opens, and a pause after every row lets everything that is not behind a gate complete. The rows are
// explained in tests/gpu/results/async_pool/README.md. The driver is loaded at run time, so this builds without CUDA:
//   g++ -O2 -std=c++20 -pthread record.cpp -o record -ldl

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

// ---- the few declarations of the CUDA driver API (cuda.h, CUDA 13.0) that are needed

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;

struct CUmemLocation {
    int type;  // 1: CU_MEM_LOCATION_TYPE_DEVICE
    int id;
};

struct CUmemPoolProps {
    int alloc_type;    // 1: CU_MEM_ALLOCATION_TYPE_PINNED
    int handle_types;  // 0: no export
    CUmemLocation location;
    void* security_attributes;
    std::size_t max_size;  // 0: no limit
    unsigned short usage;
    unsigned char reserved[54];
};
static_assert(sizeof(CUmemPoolProps) == 88);

constexpr CUresult kOutOfMemory = 2;         // CUDA_ERROR_OUT_OF_MEMORY
constexpr CUresult kNotReady = 600;          // CUDA_ERROR_NOT_READY
constexpr unsigned kNonBlocking = 1;         // CU_STREAM_NON_BLOCKING
constexpr unsigned kDisableTiming = 2;       // CU_EVENT_DISABLE_TIMING
constexpr unsigned kHostAllocMapped = 2;     // CU_MEMHOSTALLOC_DEVICEMAP
constexpr unsigned kWaitGreaterOrEqual = 0;  // CU_STREAM_WAIT_VALUE_GEQ
enum PoolAttribute {
    follow_events = 1,
    opportunistic,
    internal_dependencies,
    release_threshold,
    reserved_now,
    used_now = 7
};

template <class Signature>
class DriverCall;
template <class... Arguments>
class DriverCall<CUresult(Arguments...)> {
public:
    explicit DriverCall(const char* name) : name_(name) {
        static void* library = dlopen("libcuda.so.1", RTLD_NOW);
        call_ = library ? reinterpret_cast<CUresult (*)(Arguments...)>(dlsym(library, name)) : nullptr;
    }
    CUresult raw(Arguments... arguments) const { return call_(arguments...); }
    void operator()(Arguments... arguments) const {
        if (CUresult result = call_(arguments...)) {
            std::fprintf(stderr, "record: %s failed with CUresult %d\n", name_, result);
            std::exit(1);
        }
    }
    bool found() const { return call_ != nullptr; }

private:
    const char* name_;
    CUresult (*call_)(Arguments...);
};

struct Driver {
    DriverCall<CUresult(unsigned)> init{"cuInit"};
    DriverCall<CUresult(CUdevice*, int)> device_get{"cuDeviceGet"};
    DriverCall<CUresult(CUcontext*, CUdevice)> retain{"cuDevicePrimaryCtxRetain"};
    DriverCall<CUresult(CUcontext)> set_current{"cuCtxSetCurrent"};
    DriverCall<CUresult()> device_sync{"cuCtxSynchronize"};
    DriverCall<CUresult(void**, std::size_t, unsigned)> host_alloc{"cuMemHostAlloc"};
    DriverCall<CUresult(CUdeviceptr*, void*, unsigned)> host_pointer{"cuMemHostGetDevicePointer_v2"};
    DriverCall<CUresult(CUstream*, unsigned)> stream_create{"cuStreamCreate"};
    DriverCall<CUresult(CUstream)> stream_destroy{"cuStreamDestroy_v2"};
    DriverCall<CUresult(CUstream, unsigned long long*)> stream_id{"cuStreamGetId"};
    DriverCall<CUresult(CUstream)> stream_sync{"cuStreamSynchronize"};
    DriverCall<CUresult(CUstream)> stream_query{"cuStreamQuery"};
    DriverCall<CUresult(CUstream, CUdeviceptr, std::uint32_t, unsigned)> wait_value{"cuStreamWaitValue32_v2"};
    DriverCall<CUresult(CUstream, CUdeviceptr, std::uint32_t, unsigned)> write_value{"cuStreamWriteValue32_v2"};
    DriverCall<CUresult(CUevent*, unsigned)> event_create{"cuEventCreate"};
    DriverCall<CUresult(CUevent)> event_destroy{"cuEventDestroy_v2"};
    DriverCall<CUresult(CUevent, CUstream)> event_record{"cuEventRecord"};
    DriverCall<CUresult(CUevent)> event_sync{"cuEventSynchronize"};
    DriverCall<CUresult(CUstream, CUevent, unsigned)> stream_wait{"cuStreamWaitEvent"};
    DriverCall<CUresult(CUmemoryPool*, const CUmemPoolProps*)> pool_create{"cuMemPoolCreate"};
    DriverCall<CUresult(CUmemoryPool)> pool_destroy{"cuMemPoolDestroy"};
    DriverCall<CUresult(CUmemoryPool, int, void*)> pool_set{"cuMemPoolSetAttribute"};
    DriverCall<CUresult(CUmemoryPool, int, void*)> pool_get{"cuMemPoolGetAttribute"};
    DriverCall<CUresult(CUmemoryPool, std::size_t)> pool_trim{"cuMemPoolTrimTo"};
    DriverCall<CUresult(CUdeviceptr*, std::size_t, CUmemoryPool, CUstream)> alloc{"cuMemAllocFromPoolAsync"};
    DriverCall<CUresult(CUdeviceptr, CUstream)> free{"cuMemFreeAsync"};

    bool complete() const {
        return init.found() && stream_id.found() && wait_value.found() && write_value.found() && alloc.found();
    }
};

using Clock = std::chrono::steady_clock;
std::int64_t now_ns() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }
void pause_us(std::int64_t us) {
    for (std::int64_t end = now_ns() + us * 1000; now_ns() < end;) {}
}

// ---- gates: a stream waits at a word of mapped host memory; a second word tells that it has passed

constexpr std::size_t kGates = 4096;
struct Gate {
    std::atomic<std::uint32_t> open, passed;
};
Gate* gates;
CUdeviceptr gates_on_device;

void open_all() {
    for (std::size_t i = 0; i < kGates; ++i) gates[i].open = 1;
}

// A call that blocks on a closed gate would hang for ever: after 0.3 s all gates are opened, after 20 s the program
// ends.
std::atomic<std::int64_t> call_began{0};
std::atomic<bool> call_blocked{false};
void watch() {
    for (;;) {
        usleep(10'000);
        std::int64_t began = call_began;
        if (!began) continue;
        std::int64_t waited = now_ns() - began;
        if (waited > 300'000'000) {
            call_blocked = true;
            open_all();
        }
        if (waited > 20'000'000'000) {
            std::fprintf(stderr, "record: a call hangs, given up\n");
            _exit(3);
        }
    }
}

struct Row {
    char op = 0;
    std::int64_t id = -1;
    std::uint64_t bytes = 0;
    std::string stream;  // of row P: the three reuse flags
    std::uint64_t pointer = 0;
    std::uint64_t used = 0;
};

bool parse(const std::string& line, Row& row) {
    if (line.size() < 2 || line[1] != ',') return false;  // the head line, comments
    std::istringstream fields(line);
    std::string field[8];
    for (std::string& text : field) std::getline(fields, text, ',');
    auto number = [&](int i) { return field[i].empty() ? 0 : std::strtoull(field[i].c_str(), nullptr, 10); };
    row = {line[0], static_cast<std::int64_t>(number(1)), number(2), field[3], number(4), number(6)};
    return true;
}

class Recorder {
public:
    explicit Recorder(const Driver& driver) : cu(driver) {}

    void run(const Row& row) {
        if (row.op == 'P') return begin(row);
        if (!pool_ || call_blocked) return;
        const int stream = std::atoi(row.stream.c_str());
        CUstream handle = stream < 0 ? nullptr : streams_[stream];
        if (stream >= 0 && !handle && row.op != 'C' && std::strchr("AOFSXRWHQ", row.op)) {
            std::fprintf(stderr, "record: row %c uses stream %d, which is not there\n", row.op, stream);
            std::exit(1);
        }
        if ((row.op == 'H' || row.op == 'G') && static_cast<std::size_t>(row.id) >= kGates) {
            std::fprintf(stderr, "record: there are %zu gates\n", kGates);
            std::exit(1);
        }
        char op = row.op;
        CUdeviceptr pointer = 0;
        unsigned long long stream_id = 0;
        std::uint64_t bytes = row.bytes;
        const std::int64_t began = now_ns();
        call_began = began;
        switch (op) {
            case 'A':
            case 'O': {
                CUresult result = cu.alloc.raw(&pointer, bytes, pool_, handle);
                op = result ? 'O' : 'A';
                if (result && result != kOutOfMemory) std::fprintf(stderr, "record: alloc gave CUresult %d\n", result);
                if (!result) live_[row.id] = {pointer, bytes};
                break;
            }
            case 'F': {
                auto block = live_.find(row.id);
                if (block == live_.end()) {
                    call_began = 0;
                    return;
                }
                pointer = block->second.pointer, bytes = block->second.bytes;
                cu.free(pointer, handle);
                live_.erase(block);
                break;
            }
            case 'C':
                cu.stream_create(&streams_[stream], kNonBlocking);
                pointer = reinterpret_cast<std::uintptr_t>(streams_[stream]);
                cu.stream_id(streams_[stream], &stream_id);
                bytes = stream_id;
                break;
            case 'X': cu.stream_destroy(handle), streams_[stream] = nullptr; break;
            case 'S': cu.stream_sync(handle); break;
            case 'Q': bytes = cu.stream_query.raw(handle) == kNotReady; break;
            case 'D': cu.device_sync(); break;
            case 'T': cu.pool_trim(pool_, bytes); break;
            case 'R':
                if (!events_.count(row.id)) cu.event_create(&events_[row.id], kDisableTiming);
                cu.event_record(events_[row.id], handle);
                break;
            case 'W': cu.stream_wait(handle, events_.at(row.id), 0); break;
            case 'E': cu.event_sync(events_.at(row.id)); break;
            case 'K': cu.event_destroy(events_.at(row.id)), events_.erase(row.id); break;
            case 'H': {
                const CUdeviceptr gate = gates_on_device + row.id * sizeof(Gate);
                cu.wait_value(handle, gate, 1, kWaitGreaterOrEqual);
                cu.write_value(handle, gate + 4, 1, 0);
                break;
            }
            case 'G':
                gates[row.id].open = 1;
                // A gate behind another closed gate is not passed now; whatever passes does so at once.
                for (std::int64_t end = now_ns() + 3'000'000; !gates[row.id].passed && now_ns() < end;) {}
                bytes = gates[row.id].passed;
                pause_us(200);
                break;
            default: std::fprintf(stderr, "record: unknown op %c\n", op); std::exit(1);
        }
        call_began = 0;
        const std::int64_t ns = now_ns() - began;
        print(op, row.id, bytes, row.stream, pointer, attribute(reserved_now), attribute(used_now), ns);
        if (call_blocked) print('!', row.id, 0, row.stream, 0, 0, 0, ns);  // blocked at a gate: the rest is left out
        pause_us(pause_);
    }

    void end() {
        if (!pool_) return;
        open_all();
        cu.device_sync();
        for (auto& [id, block] : live_) cu.free(block.pointer, nullptr);
        for (auto& [id, event] : events_) cu.event_destroy(event);
        cu.device_sync();
        for (auto& [id, stream] : streams_)
            if (stream) cu.stream_destroy(stream);
        cu.pool_destroy(pool_);
        live_.clear(), events_.clear(), streams_.clear();
        pool_ = nullptr, call_blocked = false;
        std::memset(static_cast<void*>(gates), 0, kGates * sizeof(Gate));
        std::fflush(stdout);
    }

private:
    struct Block {
        CUdeviceptr pointer;
        std::uint64_t bytes;
    };

    void begin(const Row& row) {
        end();
        CUmemPoolProps properties{};
        properties.alloc_type = 1, properties.location = {1, 0}, properties.max_size = row.pointer;
        cu.pool_create(&pool_, &properties);
        std::uint64_t threshold = row.bytes;
        cu.pool_set(pool_, release_threshold, &threshold);
        for (int flag = 0; flag < 3; ++flag) {
            int value = row.stream.at(flag) == '1';
            cu.pool_set(pool_, follow_events + flag, &value);
        }
        pause_ = static_cast<std::int64_t>(row.used);
        print('P', row.id, row.bytes, row.stream, row.pointer, 0, row.used, 0);
    }

    std::uint64_t attribute(PoolAttribute which) {
        std::uint64_t value = 0;
        cu.pool_get(pool_, which, &value);
        return value;
    }

    static void print(char op, std::int64_t id, std::uint64_t bytes, const std::string& stream, std::uint64_t pointer,
        std::uint64_t reserved, std::uint64_t used, std::int64_t ns) {
        std::printf("%c,%lld,%llu,%s,%llu,%llu,%llu,%lld\n", op, static_cast<long long>(id),
            static_cast<unsigned long long>(bytes), stream.c_str(), static_cast<unsigned long long>(pointer),
            static_cast<unsigned long long>(reserved), static_cast<unsigned long long>(used),
            static_cast<long long>(ns));
    }

    const Driver& cu;
    CUmemoryPool pool_ = nullptr;
    std::int64_t pause_ = 0;  // us after each row
    std::map<std::int64_t, Block> live_;
    std::map<std::int64_t, CUevent> events_;
    std::map<int, CUstream> streams_;
};

}  // namespace

int main() {
    // As many hardware queues as there are: streams that share one would wait for each other's gates.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    Driver cu;
    if (!cu.complete()) {
        std::fprintf(stderr, "record: no CUDA driver with stream-ordered allocation here\n");
        return 77;
    }
    cu.init(0);
    CUdevice device;
    CUcontext context;
    cu.device_get(&device, 0);
    cu.retain(&context, device);
    cu.set_current(context);
    void* host;
    cu.host_alloc(&host, kGates * sizeof(Gate), kHostAllocMapped);
    gates = static_cast<Gate*>(host);
    std::memset(host, 0, kGates * sizeof(Gate));
    cu.host_pointer(&gates_on_device, host, 0);
    std::thread(watch).detach();

    std::printf("op,id,bytes,stream,pointer,reserved,used,ns\n");
    Recorder recorder(cu);
    Row row;
    for (std::string line; std::getline(std::cin, line);)
        if (parse(line, row)) recorder.run(row);
    recorder.end();
    std::fflush(stdout);
    _exit(0);  // the watchdog still runs
}
