#include "lib/device/logged_device.hpp"

namespace fragsim {

using enum DriverCallKind;

std::optional<Address> LoggedDevice::malloc(Bytes bytes, StreamId stream) {
    const std::optional<Address> address = device_.malloc(bytes, stream);
    modelled_ns_ += costs_.malloc_ns(bytes, live_);
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
    device_.free(address, bytes, stream);
    modelled_ns_ += costs_.free_ns(bytes, live_);
    --live_;
    ++backing_calls_;
    log(DriverCallKind::free, address, bytes, stream);
}

Address LoggedDevice::reserve(Bytes bytes, StreamId stream) {
    const Address address = device_.reserve(bytes, stream);
    modelled_ns_ += costs_.reserve_ns(bytes);
    ++backing_calls_;
    log(DriverCallKind::reserve, address, bytes, stream);
    return address;
}

void LoggedDevice::unreserve(Address address, Bytes bytes, StreamId stream) {
    device_.unreserve(address, bytes, stream);
    modelled_ns_ += costs_.unreserve_ns(bytes);
    ++backing_calls_;
    log(DriverCallKind::unreserve, address, bytes, stream);
}

bool LoggedDevice::map(Address address, Bytes bytes, Bytes page, StreamId stream) {
    const bool mapped = device_.map(address, bytes, page, stream);
    modelled_ns_ += costs_.map_ns(bytes, page);
    if (!mapped) {
        refuse();
        return false;
    }
    ++backing_calls_;
    log(DriverCallKind::map, address, bytes, stream);
    return true;
}

void LoggedDevice::unmap(Address address, Bytes bytes, Bytes page, StreamId stream) {
    device_.unmap(address, bytes, page, stream);
    modelled_ns_ += costs_.unmap_ns(bytes, page);
    ++backing_calls_;
    log(DriverCallKind::unmap, address, bytes, stream);
}

void LoggedDevice::move(Address from, Address to, Bytes page, StreamId stream) {
    device_.move(from, to, page, stream);
    modelled_ns_ += costs_.move_ns(page);
    backing_calls_ += 2;
    log(DriverCallKind::unmap, from, page, stream);
    log(DriverCallKind::map, to, page, stream);
}

void LoggedDevice::alias(Address from, Address to, Bytes bytes, Bytes page, StreamId stream) {
    device_.alias(from, to, bytes, page, stream);
    modelled_ns_ += costs_.alias_ns(bytes, page);
    ++backing_calls_;
    log(DriverCallKind::alias, to, bytes, stream, from);
}

void LoggedDevice::unalias(Address to, Bytes bytes, Bytes page, StreamId stream) {
    device_.unalias(to, bytes, page, stream);
    modelled_ns_ += costs_.unalias_ns(bytes, page);
    ++backing_calls_;
    log(DriverCallKind::unalias, to, bytes, stream);
}

void LoggedDevice::record(StreamId stream) {
    device_.record(stream);
    modelled_ns_ += costs_.profile().record_ns;
    log(DriverCallKind::record, 0, 0, stream);
}

void LoggedDevice::wait(StreamId waiter, StreamId on) {
    device_.wait(waiter, on);
    modelled_ns_ += costs_.profile().wait_ns;
    ++waits_;
    log(DriverCallKind::wait, 0, 0, waiter);
}

void LoggedDevice::synchronize(std::optional<StreamId> stream) {
    device_.synchronize(stream);
    modelled_ns_ += costs_.profile().synchronize_ns;
    ++synchronizations_;
    log(DriverCallKind::synchronize, 0, 0, stream.value_or(StreamId{0}));
}

// --- stream-ordered pools -------------------------------------------------------------------------------------------

class LoggedDevice::LoggedPool final : public StreamOrderedPool {
public:
    LoggedPool(LoggedDevice& log, std::unique_ptr<StreamOrderedPool> pool) : log_(log), pool_(std::move(pool)) {}

    std::optional<Allocation> allocate(Bytes bytes, StreamId stream) override {
        const std::optional<Allocation> allocation = pool_->allocate(bytes, stream);
        log_changes(stream);
        log_.modelled_ns_ += log_.costs_.profile().pool_hit_ns;
        if (allocation)
            log_.log(malloc_async, allocation->address, allocation->size, stream);
        else
            log_.refuse();
        return allocation;
    }
    void free(const Allocation& allocation, StreamId stream) override {
        pool_->free(allocation, stream);
        log_.modelled_ns_ += log_.costs_.profile().pool_free_ns;
        log_.log(free_async, allocation.address, allocation.size, stream);
    }
    void synchronized(std::optional<StreamId> stream) override {
        pool_->synchronized(stream);
        log_changes(stream.value_or(StreamId{0}));
    }
    void trim_to(Bytes keep) override {
        pool_->trim_to(keep);
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
    void log_changes(StreamId stream) {
        Bytes grown = 0, moved = 0, released = 0;
        for (const Change& change : pool_->changes()) {
            (change.moved ? moved : change.mapped ? grown : released) += change.bytes;
            ++log_.backing_calls_;
            log_.log(change.mapped ? DriverCallKind::map : DriverCallKind::unmap, change.address, change.bytes, stream);
        }
        if (grown > 0) log_.modelled_ns_ += log_.costs_.pool_grow_ns(grown);
        if (released > 0) log_.modelled_ns_ += log_.costs_.pool_release_ns(released);
        // A moved chunk shows twice.
        log_.modelled_ns_ += log_.costs_.profile().pool_move_ns * static_cast<double>(moved / 2 / (32 * kMiB));
    }

    LoggedDevice& log_;
    std::unique_ptr<StreamOrderedPool> pool_;
};

std::unique_ptr<StreamOrderedPool> LoggedDevice::create_pool(const PoolProperties& properties) {
    return std::make_unique<LoggedPool>(*this, device_.create_pool(properties));
}

}  // namespace fragsim
