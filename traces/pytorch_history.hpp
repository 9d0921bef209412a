// The history of one device as events: what the program asked, entry by entry.
//
// An address means the buffer that was last allocated there. An address whose first entry is a free was in use when
// the history began; everything else that does not match up is counted and leaves the state of the address as it was.
#pragma once

#include <span>
#include <vector>

#include "lib/core/diagnostics.hpp"
#include "lib/trace/trace_builder.hpp"
#include "traces/address_table.hpp"
#include "traces/pytorch_picture.hpp"
#include "traces/pytorch_records.hpp"

namespace fragsim {

// A block that was in use when the history began.
struct StartBlock {
    Address address;
    Bytes requested;
    Bytes size;  // exact, or kNoSize when only the request is known
    BufferId buffer;
    std::uint16_t stream, pool;  // as the builder numbers them
    BlockState state;
    std::uint32_t completed_at;  // entry at which its memory is free again; the number of entries: never
};

class HistoryReader {
public:
    HistoryReader(const Snapshot& snapshot, int device, TraceBuilder& builder, Diagnostics& diagnostics);

    // Throws Malformed. Appends events, buffers (those in use at the start among them, in the order in which they are
    // freed; those that are never freed last) and segment events to the builder, and names the buffers in `final`.
    // Returns what was in use at the start, by buffer.
    std::vector<StartBlock> read(FinalPicture& final);

    bool begins_with_a_completed_free() const { return begins_with_completed_; }

private:
    // A segment of the final picture outside the default pool; its address means it from entry `since` on.
    struct PrivateSegment {
        Address address;
        Bytes size;
        std::uint16_t pool;
        std::uint32_t since;
    };

    void reserve();
    void find_private_segments(const MemoryPicture& picture);
    PrivateSegment* private_segment_at(Address address);
    StartBlock* start_block(BufferId buffer);
    void read_entry(std::uint32_t index);
    void alloc(const EntryRecord& entry, std::uint32_t index);
    std::uint32_t free_requested(const EntryRecord& entry, std::uint32_t index);
    void free_completed(const EntryRecord& entry, std::uint32_t index);
    BufferId live_from_start(const EntryRecord& entry, std::uint32_t completed_at, BlockState state);
    void segment_event(const EntryRecord& entry, std::uint32_t index);
    void match(FinalPicture& final);

    void add(EventKind kind, std::uint32_t subject, const EntryRecord& entry) {
        if (has_time_)
            builder_.add(kind, subject, entry.time_us);
        else
            builder_.add(kind, subject);
    }
    bool next_completes(std::uint32_t index) const {
        return index + 1 < entries_.size() && entries_[index + 1].kind() == Action::free_completed &&
               entries_[index + 1].address == entries_[index].address;
    }
    std::uint16_t stream_of(const EntryRecord& entry) const { return streams_[entry.stream]; }
    std::uint16_t pool_of(const EntryRecord& entry, std::uint32_t index);
    StackId stack_of(std::uint32_t number);
    std::string position(std::uint32_t index) const;
    [[noreturn]] void missing(const char* key, std::uint32_t index) const;

    const Snapshot& snapshot_;
    const SnapshotRecords& records_;
    int device_;
    std::span<const EntryRecord> entries_;
    TraceBuilder& builder_;
    Diagnostics& diagnostics_;

    AddressTable addresses_;
    std::vector<StartBlock> start_;                 // by buffer
    std::vector<std::uint16_t> streams_, pools_;    // from the records' numbers to the builder's
    std::vector<StackId> stacks_;                   // by number in the records
    std::vector<StackId> frames_;                   // likewise; the id counts Trace::frames
    std::vector<PrivateSegment> private_segments_;  // by address
    bool has_time_ = true;
    bool begins_with_completed_ = false;
};

}  // namespace fragsim
