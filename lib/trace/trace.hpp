// The canonical trace: what one device's program asked of its allocator, in order, with what the recording says of the
// answers kept beside it for comparison only. Every reader builds one, every policy is driven by one.
//
// Columnar: an event is 4 bytes and a time stamp of 8, a buffer 24; with two events a buffer that is 24 bytes an op.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/diagnostics.hpp"
#include "lib/core/memory_picture.hpp"
#include "lib/core/types.hpp"

namespace fragsim {

enum class EventKind : std::uint8_t {
    alloc,           // op; subject: buffer
    free,            // op; subject: buffer; requested and completed in one
    free_requested,  // subject: buffer; the program let go, the memory waits for other streams' work
    free_completed,  // op; subject: buffer; a requested free becomes effective
    record_stream,   // subject: index into stream_uses
    empty_cache,     // the program asked the allocator to give cached memory back
    release_pool,    // subject: index into pools; nothing refers to the memory pool any more
    empty_pool,      // subject: index into pools; its cached memory goes back
    synchronize,     // subject: stream, or kAllStreams
    marker,          // subject: index into markers
    oom,             // subject: index into ooms; a request that the recorded run did not get
};

// An op is a step the program sees: an allocation, or a free becoming effective. Ops count from 0 in trace order.
constexpr bool is_op(EventKind kind) {
    return kind == EventKind::alloc || kind == EventKind::free || kind == EventKind::free_completed;
}

struct Event {
    static constexpr std::uint32_t kMaxSubject = (1u << 28) - 1;
    static constexpr std::uint32_t kAllStreams = kMaxSubject;

    std::uint32_t kind_bits : 4;
    std::uint32_t subject : 28;

    EventKind kind() const { return static_cast<EventKind>(kind_bits); }
    BufferId buffer() const { return {subject}; }
};

struct Buffer {
    Bytes requested;           // as the program asked, before any rounding; > 0
    Address recorded_address;  // where the recorded allocator put it; 0 when the format has none
    std::uint16_t stream;      // index into Trace::streams
    std::uint16_t pool;        // index into Trace::pools; 0 is the default pool
    StackId stack;             // none when not recorded

    StreamId stream_id() const { return {stream}; }
};

// An out-of-memory entry of the recording. `requested` is already rounded by the recorded allocator.
struct RecordedOom {
    Bytes requested;
    Bytes device_free;  // what the driver said was free; -1 when unknown
    StreamId stream;
};

struct StreamUse {
    BufferId buffer;
    StreamId stream;
};

// What the recorded allocator did to the driver. It happened before event `before_event` took its effect.
enum class SegmentEventKind : std::uint8_t { alloc, free, map, unmap };
struct SegmentEvent {
    std::uint32_t before_event;
    SegmentEventKind kind;
    StreamId stream;
    Address address;
    Bytes bytes;
};

enum class Completeness : std::uint8_t {
    complete,         // from an empty allocator on
    mid_run,          // begins with memory already in use or cached
    ring_overflowed,  // as mid_run, and the recorder is known to have dropped the oldest entries
    no_events,        // a picture of the memory, no history
};

struct StackFrame {
    std::string function, file;
    std::int64_t line;
};

struct Trace {
    int device = 0;  // ordinal in the recorded process
    Completeness completeness = Completeness::complete;

    std::vector<Event> events;
    std::vector<std::int64_t> time_us;  // one an event, microseconds since the epoch; empty when the format has none
    std::vector<Buffer> buffers;        // by BufferId
    std::uint32_t ops = 0;

    std::vector<std::uint64_t> streams;  // raw handles, ascending; index is StreamId
    std::vector<PoolName> pools;         // index 0 is (0, 0), the default pool
    std::vector<StreamUse> stream_uses;
    std::vector<RecordedOom> ooms;
    std::vector<std::string> markers;

    std::vector<SegmentEvent> segment_events;  // in order
    MemoryPicture initial;                     // empty when complete
    std::optional<MemoryPicture> final;        // as the recording ends; none when the format has no picture

    // Call stacks: stack i is frames[stack_frames[stack_begin[i] .. stack_begin[i+1])], innermost first.
    std::vector<StackFrame> frames;
    std::vector<std::uint32_t> stack_frames, stack_begin;

    std::uint32_t inferred_empty_caches = 0;  // empty_cache and empty_pool events read off the file's segment events
    bool doubtful_refusal = false;            // all that shows one is a release which may have been an empty_cache
    bool inferred_pools = false;              // some buffers' pools are not in the file but read off the history
};

// A named stretch of the recorded run (record_function scopes, optimizer steps).
struct Annotation {
    enum class Stage : std::uint8_t { start, end } stage;
    int device;
    std::int64_t time_us;
    std::string name;
};

// The settings the recorded allocator ran under, as far as the file says.
struct AllocatorSettings {
    std::string alloc_conf;                                   // the last settings string; "" when none
    std::vector<std::pair<std::string, std::string>> values;  // every exported key, printed; in file order
};

// One file: a trace for each device that it says anything about.
struct Recording {
    std::string path;
    std::string format;         // name in traces/formats.def
    std::string sha256;         // of the file as stored; "" unless asked for
    std::vector<Trace> traces;  // by device ordinal
    std::optional<AllocatorSettings> settings;
    std::string torch_version;   // whose rules apply, guessed by the file's keys: "2.12"; "" when it is not PyTorch's
    std::string torch_versions;  // the guess for people: "2.10 to 2.12"
    bool hip = false;            // by PyTorch for AMD's GPUs, as far as the file shows
    std::vector<Annotation> annotations;
    Diagnostics diagnostics;
};

}  // namespace fragsim
