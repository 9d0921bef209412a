// The recorded allocator's memory, followed along its history: which segments it held, which blocks in them were in
// use, and so what it could have handed out or given back at any moment.
//
// The history gives requests and addresses; how large a block became follows from the free range it was cut from
// (spec/pytorch-caching-allocator.md, 6.2). Private pools are not told apart: release orders hold where there are none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "lib/trace/trace.hpp"
#include "traces/pytorch_rounding.hpp"

namespace fragsim {

struct AllocatorRules {
    RoundupDivisions roundup{};
    Bytes max_split_size = -1;        // -1: no limit
    bool garbage_collection = false;  // a threshold is set
};

// What goes back to the driver: a segment, or pages of an expandable one.
struct Release {
    SegmentEventKind kind;
    Address address;
    Bytes bytes;
    friend bool operator==(const Release&, const Release&) = default;
};

class RecordedMemory {
public:
    // Both must outlive this. The streams of `trace` are numbered in the order of their handles.
    RecordedMemory(const Trace& trace, const AllocatorRules& rules);

    // Goes on to the moment before segment event `index`; never back.
    void advance_to(std::uint32_t index);

    Bytes reserved() const { return reserved_; }
    // Blocks whose delayed frees completed after the last request or free of the program: a malloc that then releases
    // memory may have found them free, or have waited for them after its search.
    bool has_late() const { return !late_.empty(); }

    // How the moment is looked at.
    struct View {
        bool late_in_use = false;             // the late ones count as in use
        std::vector<Address> also_free = {};  // blocks that become free only now
        std::vector<Release> released = {};   // segments that are gone already
    };
    // Would the cache serve this request? (take_cached, 6.1)
    bool serves(Bytes rounded, StreamId stream, const View& view) const;
    // What release_cached gives back, in its order (9.2).
    std::vector<Release> release_cached(const View& view) const;
    // What release_oversize gives back for a request that the driver refused (9.1), and whether that is enough to ask
    // the driver again.
    std::vector<Release> release_oversize(Bytes rounded, StreamId stream, const View& view, bool& enough) const;

private:
    struct Segment {
        Bytes size;
        StreamId stream;
        bool small, expandable;
    };
    struct Block {
        Address address;
        Bytes size;
    };
    struct InUse {
        Bytes size;
        BufferId buffer;  // whose block it is; none where nobody knows
    };
    using Blocks = std::map<Address, InUse>;
    struct FreeRange {
        Address address;
        Bytes size;
        StreamId stream;
        bool small, expandable, whole;  // whole: a segment that does not expand, nothing of it in use
        Address origin;                 // where the mapped range begins; pages are counted from there
    };

    void apply(const SegmentEvent& event);
    void map(const SegmentEvent& event);
    void unmap(const SegmentEvent& event);
    void apply(Event event);
    void allocate(BufferId buffer);
    void put(Blocks::iterator hint, Address address, InUse block);
    // The block leaves those in use; none: it was not there.
    std::optional<Block> take(BufferId buffer);
    std::map<Address, Segment>::const_iterator segment_of(Address address) const;
    std::vector<FreeRange> free_ranges(const View& view) const;  // in the order of a pool's free set

    const Trace& trace_;
    const AllocatorRules& rules_;
    std::map<Address, Segment> segments_;
    Blocks in_use_;
    std::vector<Blocks::iterator> block_of_;  // by buffer; end: it has none
    std::vector<Block> late_;
    Bytes reserved_ = 0;
    std::uint32_t next_event_ = 0, next_segment_event_ = 0;
};

}  // namespace fragsim
