#include "traces/pytorch_history.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "traces/pickle.hpp"

namespace fragsim {

HistoryReader::HistoryReader(const Snapshot& snapshot, int device, TraceBuilder& builder, Diagnostics& diagnostics)
    : snapshot_(snapshot), records_(snapshot.records), device_(device),
      entries_(snapshot.history(static_cast<std::size_t>(device))), builder_(builder), diagnostics_(diagnostics) {
    reserve();
}

// Counts first: the columns get their final size at once, and the tables cover what this device uses.
void HistoryReader::reserve() {
    constexpr std::uint16_t kUnused = 0xffff;
    streams_.assign(records_.streams.size(), kUnused);
    pools_.assign(records_.pools.size() + 1, kUnused);
    pools_[0] = 0;
    std::size_t allocs = 0, frees = 0, segments = 0;
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        const EntryRecord& entry = entries_[i];
        switch (entry.kind()) {
            case Action::alloc: ++allocs; break;
            case Action::free: ++frees; break;
            case Action::free_completed: ++frees; break;
            case Action::free_requested: frees += !next_completes(i); break;
            case Action::segment_alloc:
            case Action::segment_free:
            case Action::segment_map:
            case Action::segment_unmap: ++segments; break;
            case Action::oom: ++frees; break;
            default: continue;
        }
        has_time_ = has_time_ && entry.time_us != kNoTime;
        if (streams_[entry.stream] == kUnused) streams_[entry.stream] = builder_.stream(records_.stream(entry.stream));
        if (pools_[entry.pool] == kUnused) pools_[entry.pool] = builder_.pool(records_.pool(entry.pool - 1u));
    }
    Trace& trace = builder_.trace();
    trace.events.reserve(allocs + frees);
    if (has_time_) trace.time_us.reserve(allocs + frees);
    trace.buffers.reserve(allocs + 16);
    trace.segment_events.reserve(segments);
}

std::vector<StartBlock> HistoryReader::read(FinalPicture& final) {
    if (final.picture) find_private_segments(*final.picture);
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        const EntryRecord& entry = entries_[i];
        switch (entry.kind()) {
            case Action::alloc: alloc(entry, i); break;
            case Action::free_requested: i = free_requested(entry, i); break;
            case Action::free_completed: free_completed(entry, i); break;
            case Action::free: i = free_requested(entry, i); break;
            case Action::segment_alloc:
            case Action::segment_free:
            case Action::segment_map:
            case Action::segment_unmap: segment_event(entry, i); break;
            case Action::oom: {
                if (entry.size == kNoSize || entry.size == 0) {
                    diagnostics_.count("out of memory for no bytes", position(i));
                    break;
                }
                std::vector<RecordedOom>& ooms = builder_.trace().ooms;
                const Bytes device_free = entry.address == kNoAddress ? -1 : static_cast<Bytes>(entry.address);
                ooms.push_back({entry.size, device_free, {stream_of(entry)}});
                add(EventKind::oom, static_cast<std::uint32_t>(ooms.size() - 1), entry);
                break;
            }
            case Action::snapshot:
            case Action::annotate: break;
            case Action::unknown: diagnostics_.count("entry with an unknown action", position(i)); break;
        }
    }
    match(final);
    return std::move(start_);
}

void HistoryReader::alloc(const EntryRecord& entry, std::uint32_t index) {
    if (entry.address == kNoAddress) missing("addr", index);
    if (entry.size == kNoSize) missing("size", index);
    AddressEntry& here = addresses_[entry.address];
    if (here.state == AddressState::live || here.state == AddressState::pending) [[unlikely]] {
        // Its free is not in the file; it must have happened by now.
        diagnostics_.count("allocation at an address in use", position(index));
        add(here.state == AddressState::live ? EventKind::free : EventKind::free_completed, here.buffer.value, entry);
    }
    if (entry.size == 0) [[unlikely]] {
        diagnostics_.count("allocation of no bytes", position(index));
        here.state = AddressState::empty;
        return;
    }
    here.buffer =
        builder_.add_buffer(entry.size, entry.address, stream_of(entry), pool_of(entry, index), stack_of(entry.stack));
    here.state = AddressState::live;
    add(EventKind::alloc, here.buffer.value, entry);
}

// Returns the last entry that it used.
std::uint32_t HistoryReader::free_requested(const EntryRecord& entry, std::uint32_t index) {
    if (entry.address == kNoAddress) missing("addr", index);
    const bool completes_next = entry.kind() == Action::free_requested && next_completes(index);
    const bool at_once = completes_next || entry.kind() == Action::free;
    const std::uint32_t last = index + completes_next;

    AddressEntry& here = addresses_[entry.address];
    switch (here.state) {
        case AddressState::live: break;
        case AddressState::unseen:
            here.buffer = live_from_start(
                entry, at_once ? last : static_cast<std::uint32_t>(entries_.size()), BlockState::active_allocated);
            break;
        case AddressState::empty:
            if (at_once) here.state = AddressState::freed;
            return last;
        case AddressState::pending:
            diagnostics_.count("double free", position(index));
            return index;  // the completion is the first one's
        case AddressState::freed: diagnostics_.count("double free", position(index)); return last;
    }
    here.state = at_once ? AddressState::freed : AddressState::pending;
    add(at_once ? EventKind::free : EventKind::free_requested, here.buffer.value, entry);
    return last;
}

void HistoryReader::free_completed(const EntryRecord& entry, std::uint32_t index) {
    if (entry.address == kNoAddress) missing("addr", index);
    AddressEntry& here = addresses_[entry.address];
    EventKind kind = EventKind::free_completed;
    switch (here.state) {
        case AddressState::pending:
            if (StartBlock* block = start_block(here.buffer)) block->completed_at = index;
            break;
        case AddressState::unseen:
            here.buffer = live_from_start(entry, index, BlockState::active_pending_free);
            begins_with_completed_ |= builder_.next_event() == 0;
            break;
        case AddressState::live:
            diagnostics_.count("free_completed without free_requested", position(index));
            kind = EventKind::free;
            break;
        case AddressState::empty: here.state = AddressState::freed; return;
        case AddressState::freed: diagnostics_.count("double free", position(index)); return;
    }
    here.state = AddressState::freed;
    add(kind, here.buffer.value, entry);
}

BufferId HistoryReader::live_from_start(const EntryRecord& entry, std::uint32_t completed_at, BlockState state) {
    const auto index = static_cast<std::uint32_t>(&entry - entries_.data());
    if (entry.size == kNoSize || entry.size == 0) missing("size", index);
    const std::uint16_t stream = stream_of(entry), pool = pool_of(entry, index);
    const BufferId buffer = builder_.add_buffer(entry.size, entry.address, stream, pool);
    start_.push_back({entry.address, entry.size, kNoSize, buffer, stream, pool, state, completed_at});
    return buffer;
}

StartBlock* HistoryReader::start_block(BufferId buffer) {
    const auto at = std::lower_bound(start_.begin(), start_.end(), buffer,
        [](const StartBlock& block, BufferId wanted) { return block.buffer < wanted; });
    return at != start_.end() && at->buffer == buffer ? &*at : nullptr;
}

void HistoryReader::segment_event(const EntryRecord& entry, std::uint32_t index) {
    if (entry.address == kNoAddress) missing("addr", index);
    if (entry.size == kNoSize || entry.size == 0) missing("size", index);
    const auto kind = static_cast<SegmentEventKind>(entry.action - static_cast<std::uint32_t>(Action::segment_alloc));
    builder_.trace().segment_events.push_back(
        {builder_.next_event(), kind, {stream_of(entry)}, entry.address, entry.size});
}

// The blocks in use at the end are buffers of the history, or lived through it from before its start.
void HistoryReader::match(FinalPicture& final) {
    if (!final.picture) return;
    const auto entry_count = static_cast<std::uint32_t>(entries_.size());
    std::vector<bool> shown(builder_.trace().buffers.size());
    for (const SegmentPicture& segment : final.picture->segments)
        for (std::uint32_t i = segment.first_block; i < segment.first_block + segment.block_count; ++i) {
            BlockPicture& block = final.picture->blocks[i];
            if (block.state == BlockState::inactive) continue;
            AddressEntry& here = addresses_[block.address];
            switch (here.state) {
                case AddressState::live:
                case AddressState::pending:
                    block.buffer = here.buffer;
                    shown[here.buffer.value] = true;
                    if (StartBlock* start = start_block(here.buffer)) start->size = block.size;
                    break;
                case AddressState::unseen:
                    block.buffer = builder_.add_buffer(block.requested, block.address,
                        static_cast<std::uint16_t>(segment.stream.value), segment.pool, stack_of(final.stacks[i]));
                    start_.push_back({block.address, block.requested, block.size, block.buffer,
                        static_cast<std::uint16_t>(segment.stream.value), segment.pool, block.state, entry_count});
                    break;
                case AddressState::empty:
                case AddressState::freed:
                    diagnostics_.count("block in use at the end that was freed",
                        fmt::format("device {}, block {:#x}", device_, block.address));
                    break;
            }
        }

    std::vector<BufferId> absent;
    addresses_.for_each([&](const AddressEntry& entry) {
        const bool in_use = entry.state == AddressState::live || entry.state == AddressState::pending;
        if (in_use && entry.buffer.value < shown.size() && !shown[entry.buffer.value]) absent.push_back(entry.buffer);
    });
    std::sort(absent.begin(), absent.end());
    for (const BufferId buffer : absent)
        diagnostics_.count("allocation that the picture at the end does not show",
            fmt::format("device {}, address {:#x}", device_, builder_.trace().buffers[buffer.value].recorded_address));
}

void HistoryReader::find_private_segments(const MemoryPicture& picture) {
    for (const SegmentPicture& segment : picture.segments)
        if (segment.pool != 0) private_segments_.push_back({segment.address, segment.size, segment.pool, 0});
    if (private_segments_.empty()) return;
    for (std::uint32_t i = 0; i < entries_.size(); ++i)
        if (entries_[i].kind() == Action::segment_alloc)
            if (PrivateSegment* segment = private_segment_at(entries_[i].address)) segment->since = i;
}

HistoryReader::PrivateSegment* HistoryReader::private_segment_at(Address address) {
    const auto after = std::upper_bound(private_segments_.begin(), private_segments_.end(), address,
        [](Address wanted, const PrivateSegment& segment) { return wanted < segment.address; });
    if (after == private_segments_.begin()) return nullptr;
    PrivateSegment& segment = *(after - 1);
    return address - segment.address < static_cast<Address>(segment.size) ? &segment : nullptr;
}

// From the entry, or from the segment there as far as the snapshot still shows it.
std::uint16_t HistoryReader::pool_of(const EntryRecord& entry, std::uint32_t index) {
    if (entry.pool != 0 || private_segments_.empty()) [[likely]]
        return pools_[entry.pool];
    const PrivateSegment* segment = private_segment_at(entry.address);
    return segment != nullptr && index >= segment->since ? segment->pool : std::uint16_t{0};
}

StackId HistoryReader::stack_of(std::uint32_t number) {
    if (number == kNoStack) return {};
    if (stacks_.empty()) {
        stacks_.resize(records_.stacks.size());
        frames_.resize(records_.frames.size());
    }
    StackId& stack = stacks_[number];
    if (stack) return stack;

    Trace& trace = builder_.trace();
    if (trace.stack_begin.empty()) trace.stack_begin.push_back(0);
    for (const std::uint32_t frame : records_.stack(number)) {
        StackId& known = frames_[frame];
        if (!known) {
            known = {static_cast<std::uint32_t>(trace.frames.size())};
            const FrameRecord record = records_.frame(frame);
            trace.frames.push_back({std::string(records_.string(record.function)),
                std::string(records_.string(record.file)), record.line});
        }
        trace.stack_frames.push_back(known.value);
    }
    stack = {static_cast<std::uint32_t>(trace.stack_begin.size() - 1)};
    trace.stack_begin.push_back(static_cast<std::uint32_t>(trace.stack_frames.size()));
    return stack;
}

std::string HistoryReader::position(std::uint32_t index) const {
    return fmt::format("device {}, entry {}", device_, index);
}

void HistoryReader::missing(const char* key, std::uint32_t index) const {
    throw Malformed{fmt::format("{}: no {}", position(index), key), "the snapshot is damaged or was edited"};
}

}  // namespace fragsim
