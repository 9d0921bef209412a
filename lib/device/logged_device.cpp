#include "lib/device/logged_device.hpp"

#include <chrono>
#include <type_traits>

namespace fragsim {

using enum DriverCallKind;

std::int64_t LoggedDevice::clock_ns() const {
    if (timing_ == Timing::modelled) return 0;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void LoggedDevice::add_time(DriverCallKind kind, double modelled_ns, std::int64_t start_ns) {
    modelled_ns_ += modelled_ns;
    price_ns_ += modelled_ns;
    if (timing_ == Timing::modelled) return;
    const std::int64_t measured = clock_ns() - start_ns;
    measured_ns_ += measured;
    call_times_.push_back({kind, modelled_ns, measured});
}

template <class Call>
auto LoggedDevice::timed(DriverCallKind kind, double modelled_ns, Call call) {
    const std::int64_t start = clock_ns();
    if constexpr (std::is_void_v<decltype(call())>) {
        call();
        add_time(kind, modelled_ns, start);
    } else {
        auto result = call();
        add_time(kind, modelled_ns, start);
        return result;
    }
}

std::optional<Address> LoggedDevice::malloc(Bytes bytes, StreamId stream) {
    const std::optional<Address> address =
        timed(DriverCallKind::malloc, costs_.malloc_ns(bytes, live_), [&] { return device_.malloc(bytes, stream); });
    if (!address) {
        refuse();
        return {};
    }
    ++live_;
    ++backing_calls_;
    log(DriverCallKind::malloc, *address, bytes, stream);
    return address;
}

void LoggedDevice::free(Address address, Bytes bytes, StreamId stream) {
    timed(DriverCallKind::free, costs_.free_ns(bytes, live_), [&] { device_.free(address, bytes, stream); });
    --live_;
    ++backing_calls_;
    log(DriverCallKind::free, address, bytes, stream);
}

Address LoggedDevice::reserve(Bytes bytes, StreamId stream) {
    const Address address =
        timed(DriverCallKind::reserve, costs_.reserve_ns(bytes), [&] { return device_.reserve(bytes, stream); });
    ++backing_calls_;
    log(DriverCallKind::reserve, address, bytes, stream);
    return address;
}

void LoggedDevice::unreserve(Address address, Bytes bytes, StreamId stream) {
    timed(DriverCallKind::unreserve, costs_.unreserve_ns(bytes), [&] { device_.unreserve(address, bytes, stream); });
    ++backing_calls_;
    log(DriverCallKind::unreserve, address, bytes, stream);
}

bool LoggedDevice::map(Address address, Bytes bytes, Bytes page, StreamId stream) {
    const bool mapped = timed(
        DriverCallKind::map, costs_.map_ns(bytes, page), [&] { return device_.map(address, bytes, page, stream); });
    if (!mapped) {
        refuse();
        return false;
    }
    ++backing_calls_;
    log(DriverCallKind::map, address, bytes, stream);
    return true;
}

void LoggedDevice::unmap(Address address, Bytes bytes, Bytes page, StreamId stream) {
    timed(DriverCallKind::unmap, costs_.unmap_ns(bytes, page), [&] { device_.unmap(address, bytes, page, stream); });
    ++backing_calls_;
    log(DriverCallKind::unmap, address, bytes, stream);
}

void LoggedDevice::move(Address from, Address to, Bytes page, StreamId stream) {
    timed(DriverCallKind::map, costs_.move_ns(page), [&] { device_.move(from, to, page, stream); });
    backing_calls_ += 2;
    log(DriverCallKind::unmap, from, page, stream);
    log(DriverCallKind::map, to, page, stream);
}

void LoggedDevice::alias(Address from, Address to, Bytes bytes, Bytes page, StreamId stream) {
    timed(DriverCallKind::alias, costs_.alias_ns(bytes, page), [&] { device_.alias(from, to, bytes, page, stream); });
    ++backing_calls_;
    log(DriverCallKind::alias, to, bytes, stream, from);
}

void LoggedDevice::unalias(Address to, Bytes bytes, Bytes page, StreamId stream) {
    timed(DriverCallKind::unalias, costs_.unalias_ns(bytes, page), [&] { device_.unalias(to, bytes, page, stream); });
    ++backing_calls_;
    log(DriverCallKind::unalias, to, bytes, stream);
}

void LoggedDevice::record(StreamId stream) {
    timed(DriverCallKind::record, costs_.profile().record_ns, [&] { device_.record(stream); });
    log(DriverCallKind::record, 0, 0, stream);
}

void LoggedDevice::wait(StreamId waiter, StreamId on) {
    timed(DriverCallKind::wait, costs_.profile().wait_ns, [&] { device_.wait(waiter, on); });
    ++waits_;
    log(DriverCallKind::wait, 0, 0, waiter);
}

void LoggedDevice::synchronize(std::optional<StreamId> stream) {
    timed(DriverCallKind::synchronize, costs_.profile().synchronize_ns, [&] { device_.synchronize(stream); });
    ++synchronizations_;
    log(DriverCallKind::synchronize, 0, 0, stream.value_or(StreamId{0}));
}

// --- stream-ordered pools -------------------------------------------------------------------------------------------

class LoggedDevice::LoggedPool final : public StreamOrderedPool {
public:
    LoggedPool(LoggedDevice& log, std::unique_ptr<StreamOrderedPool> pool) : log_(log), pool_(std::move(pool)) {}

    std::optional<Allocation> allocate(Bytes bytes, StreamId stream) override {
        const std::int64_t start = log_.clock_ns();
        const std::optional<Allocation> allocation = pool_->allocate(bytes, stream);
        log_.add_time(malloc_async, log_.costs_.profile().pool_hit_ns + changes_ns(), start);
        log_changes(stream);
        if (allocation)
            log_.log(malloc_async, allocation->address, allocation->size, stream);
        else
            log_.refuse();
        return allocation;
    }
    void free(const Allocation& allocation, StreamId stream) override {
        log_.timed(free_async, log_.costs_.profile().pool_free_ns, [&] { pool_->free(allocation, stream); });
        log_.log(free_async, allocation.address, allocation.size, stream);
    }
    void synchronized(std::optional<StreamId> stream) override {
        const std::int64_t start = log_.clock_ns();
        pool_->synchronized(stream);
        log_.add_time(DriverCallKind::synchronize, changes_ns(), start);
        log_changes(stream.value_or(StreamId{0}));
    }
    void trim_to(Bytes keep) override {
        const std::int64_t start = log_.clock_ns();
        pool_->trim_to(keep);
        log_.add_time(trim, changes_ns(), start);
        log_changes({0});
        log_.log(trim, 0, keep, {0});
    }

    Bytes reserved() const override { return pool_->reserved(); }
    std::span<const Change> changes() const override { return pool_->changes(); }
    Bytes idle_bytes() const override { return pool_->idle_bytes(); }
    Bytes largest_free() const override { return pool_->largest_free(); }
    void free_sizes(std::vector<Bytes>& out) const override { pool_->free_sizes(out); }
    MemoryPicture picture() const override { return pool_->picture(); }

private:
    // What the chunks that the last call got, moved and gave back cost.
    double changes_ns() const {
        Bytes grown = 0, moved = 0, released = 0;
        for (const Change& change : pool_->changes())
            (change.moved ? moved : change.mapped ? grown : released) += change.bytes;
        double ns = 0;
        if (grown > 0) ns += log_.costs_.pool_grow_ns(grown);
        if (released > 0) ns += log_.costs_.pool_release_ns(released);
        // A moved chunk shows twice.
        return ns + log_.costs_.profile().pool_move_ns * static_cast<double>(moved / 2 / kChunk);
    }
    void log_changes(StreamId stream) {
        for (const Change& change : pool_->changes()) {
            ++log_.backing_calls_;
            log_.log(change.mapped ? DriverCallKind::map : DriverCallKind::unmap, change.address, change.bytes, stream);
        }
    }

    LoggedDevice& log_;
    std::unique_ptr<StreamOrderedPool> pool_;
};

std::unique_ptr<StreamOrderedPool> LoggedDevice::create_pool(const PoolProperties& properties) {
    return std::make_unique<LoggedPool>(*this, device_.create_pool(properties));
}

}  // namespace fragsim
