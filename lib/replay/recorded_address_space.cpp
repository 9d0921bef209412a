#include "lib/replay/recorded_address_space.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace fragsim {
namespace {

using Range = CudaMallocAddresses::Range;
using Start = CudaMallocAddresses::Start;

// What following the record with a model showed.
struct Reading {
    std::vector<Range> passed_over;  // free for the model and large enough, but not taken: something else has it
    std::vector<Range> chunks;       // where new chunks went, in order
    std::int64_t explained = 0;
};

Reading follow(const Trace& trace, CudaMallocAddresses model) {
    Reading reading;
    std::set<Address> unexplained;
    for (const SegmentEvent& event : trace.segment_events) {
        if (event.kind == SegmentEventKind::free) {
            if (unexplained.erase(event.address) == 0) model.free(event.address, event.bytes);
            continue;
        }
        if (event.kind != SegmentEventKind::alloc) continue;
        const bool in_a_chunk = model.chunk_range_at(event.address).size > 0;
        for (bool first_guess = true;; first_guess = false) {
            const Address guess = model.malloc(event.bytes);
            if (guess == event.address) {
                reading.explained += first_guess;
                break;
            }
            model.free(guess, event.bytes);
            const Range free = model.free_range_at(guess);
            const bool covers_the_record = free.start <= event.address && event.address < free.end();
            if (free.size == 0 || covers_the_record) {  // a new chunk elsewhere, or another place in the same range
                // Some contradict the rule; they are left out of the model.
                if (!model.malloc_at(event.address, event.bytes)) unexplained.insert(event.address);
                break;
            }
            model.block(free);
            reading.passed_over.push_back(free);
        }
        if (!in_a_chunk && !unexplained.contains(event.address))
            reading.chunks.push_back(model.chunk_range_at(event.address));
    }
    return reading;
}

bool uses_streams(const Trace& trace) {
    return std::any_of(trace.streams.begin(), trace.streams.end(), [](std::uint64_t raw) { return raw != 0; });
}

}  // namespace

AddressSpace fresh_address_space(const Trace& trace) {
    return {CudaMallocAddresses(uses_streams(trace) ? Start::extra_streams : Start::fresh)};
}

AddressSpace read_address_space(const Trace& trace) {
    const auto first = std::find_if(trace.segment_events.begin(), trace.segment_events.end(),
        [](const SegmentEvent& e) { return e.kind == SegmentEventKind::alloc; });
    AddressSpace best = fresh_address_space(trace);
    if (first == trace.segment_events.end() || !trace.initial.segments.empty()) return best;

    Reading best_reading;
    for (const Start start : {Start::fresh, Start::extra_streams}) {
        // The first address fixes the top: the model's first, moved.
        const Address modelled = CudaMallocAddresses(start).malloc(first->bytes);
        const Address top = first->address + (CudaMallocAddresses::kTop - modelled);
        if (top % static_cast<Address>(CudaMallocAddresses::kChunkUnit) != 0) continue;
        Reading reading = follow(trace, CudaMallocAddresses(start, top));
        if (best.from_recording && reading.explained <= best_reading.explained) continue;
        best = {CudaMallocAddresses(start, top), reading.explained, true};
        best_reading = std::move(reading);
    }
    for (const Range& range : best_reading.passed_over) best.start.block(range);
    best.start.expect_chunks(std::move(best_reading.chunks));
    return best;
}

}  // namespace fragsim
