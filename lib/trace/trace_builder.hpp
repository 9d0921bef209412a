// Puts a Trace together event by event: dense numbers for buffers, streams and pools, the count of ops, the limits.
// Streams may come in any order; finish() numbers them by their raw handles.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lib/trace/trace.hpp"

namespace fragsim {

class TraceBuilder {
public:
    explicit TraceBuilder(int device = 0) {
        trace_.device = device;
        trace_.pools.emplace_back(0, 0);
    }

    // Throws Error(input) beyond 65535; the number is final only after finish().
    std::uint16_t stream(std::uint64_t handle);
    std::uint16_t pool(std::pair<std::int64_t, std::int64_t> id);

    BufferId add_buffer(
        Bytes requested, Address recorded, std::uint16_t stream, std::uint16_t pool = 0, StackId stack = {}) {
        trace_.buffers.push_back({requested, recorded, stream, pool, stack});
        return {static_cast<std::uint32_t>(trace_.buffers.size() - 1)};
    }

    // The index of the event that add() will append next. Throws Error(input) when an index no longer fits.
    std::uint32_t next_event() const { return static_cast<std::uint32_t>(trace_.events.size()); }
    void add(EventKind kind, std::uint32_t subject = 0) {
        if (subject > Event::kMaxSubject || trace_.events.size() > Event::kMaxSubject) [[unlikely]]
            fail_too_long();
        trace_.events.push_back({static_cast<std::uint32_t>(kind) & 15, subject & Event::kMaxSubject});
        trace_.ops += is_op(kind);
    }
    void add(EventKind kind, std::uint32_t subject, std::int64_t time_us) {
        add(kind, subject);
        trace_.time_us.push_back(time_us);
    }
    void add_stream_use(BufferId buffer, std::uint16_t stream);
    void add_marker(std::string_view text);
    // Turns the free_requested event `index` into a free: its completion was never said to come later.
    void complete_at_once(std::uint32_t index) {
        trace_.events[index].kind_bits = static_cast<std::uint32_t>(EventKind::free) & 15;
        ++trace_.ops;
    }
    void add_synchronize(std::uint16_t stream) { add(EventKind::synchronize, stream); }

    Trace& trace() { return trace_; }

    // Sorts the streams and renumbers every reference to them, pictures included. The builder is empty afterwards.
    Trace finish();

private:
    [[noreturn]] static void fail_too_long();

    Trace trace_;
    std::unordered_map<std::uint64_t, std::uint16_t> streams_;
};

}  // namespace fragsim
