#include "lib/policy/accounting_policy.hpp"

#include <algorithm>

#include "lib/core/error.hpp"

namespace fragsim {

std::optional<Placement> AccountingPolicy::allocate(BufferId buffer, const Request& request) {
    constexpr Bytes kCeiling = Bytes{1} << 60;  // sizes above it overflow when they are rounded
    std::optional<Place> found = request.bytes > kCeiling ? std::nullopt : place(request);
    if (!found && make_room()) found = place(request);
    if (!found) {
        ++stats_.num_ooms;
        return {};
    }
    if (order_ == StreamOrder::inserted) order_streams(request.stream);
    if (buffer.value >= live_.size()) live_.resize(std::max<std::size_t>(buffer.value + 1, 2 * live_.size()));
    live_[buffer.value] = {*found, request.bytes, request.stream, BlockState::active_allocated, false};
    stats_.allocation.all.increase(1);
    stats_.active.all.increase(1);
    stats_.allocated_bytes.all.increase(found->size);
    stats_.active_bytes.all.increase(found->size);
    stats_.requested_bytes.all.increase(request.bytes);
    requested_in_hands_ += request.bytes;
    return Placement{found->address, found->size};
}

bool AccountingPolicy::make_room() { return complete_pending(); }

bool AccountingPolicy::complete_pending() {
    if (pending_.empty()) return false;
    device_.synchronize({});
    ++stats_.num_sync_all_streams;
    for (const BufferId waiting : pending_) complete(waiting);
    pending_.clear();
    return true;
}

void AccountingPolicy::free(BufferId buffer) {
    let_go(live_[buffer.value]);
    complete(buffer);
}

void AccountingPolicy::free_requested(BufferId buffer) {
    let_go(live_[buffer.value]);
    live_[buffer.value].waited = true;
    pending_.push_back(buffer);
}

void AccountingPolicy::let_go(Live& live) {
    FRAGSIM_ASSERT(live.state == BlockState::active_allocated);
    live.state = BlockState::active_pending_free;
    requested_in_hands_ -= live.requested;
    stats_.allocation.all.decrease(1);
    stats_.allocated_bytes.all.decrease(live.place.size);
}

void AccountingPolicy::free_completed(BufferId buffer) {
    complete(buffer);
    const auto still_waiting = static_cast<std::size_t>(stats_.active.all.current - stats_.allocation.all.current);
    if (pending_.size() > 2 * still_waiting + 16 || still_waiting == 0)
        std::erase_if(pending_, [&](BufferId b) { return live_[b.value].state != BlockState::active_pending_free; });
}

void AccountingPolicy::complete(BufferId buffer) {
    Live& live = live_[buffer.value];
    if (live.state != BlockState::active_pending_free) return;
    live.state = BlockState::inactive;
    stats_.active.all.decrease(1);
    stats_.active_bytes.all.decrease(live.place.size);
    stats_.requested_bytes.all.decrease(live.requested);
    const StreamId stream = stream_to_free_on(buffer, live);
    if (order_ == StreamOrder::inserted) {
        if (stream.value >= frees_.size()) frees_.resize(stream.value + 1u);
        ++frees_[stream.value];
    }
    give_back(live.place, stream);
}

void AccountingPolicy::order_streams(StreamId stream) {
    if (frees_.size() < 2 && stream.value == 0) return;
    if (stream.value >= seen_.size()) seen_.resize(stream.value + 1u);
    std::vector<std::uint64_t>& seen = seen_[stream.value];
    seen.resize(frees_.size());
    for (std::uint32_t other = 0; other < frees_.size(); ++other) {
        if (other == stream.value || seen[other] == frees_[other]) continue;
        seen[other] = frees_[other];
        device_.record({other});
        device_.wait(stream, {other});
    }
}

void AccountingPolicy::add_reserved(Bytes bytes, std::int64_t segments) {
    stats_.num_device_alloc += segments;
    stats_.segment.all.increase(segments);
    stats_.reserved_bytes.all.increase(bytes);
}

void AccountingPolicy::remove_reserved(Bytes bytes, std::int64_t segments) {
    stats_.num_device_free += segments;
    stats_.segment.all.decrease(segments);
    stats_.reserved_bytes.all.decrease(bytes);
}

std::vector<BufferId> AccountingPolicy::buffers_by_handle(std::size_t handles) const {
    std::vector<BufferId> all(handles);
    for (std::uint32_t i = 0; i < live_.size(); ++i)
        if (live_[i].state != BlockState::inactive) all[live_[i].place.handle] = {i};
    return all;
}

}  // namespace fragsim
