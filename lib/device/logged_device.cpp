#include "lib/device/logged_device.hpp"

namespace fragsim {

std::optional<Address> LoggedDevice::malloc(Bytes bytes, StreamId stream) {
    const std::optional<Address> address = device_.malloc(bytes, stream);
    modelled_ns_ += costs_.malloc_ns(bytes, live_);
    if (!address) {
        ++refused_;
        return {};
    }
    ++live_;
    log(DriverCallKind::malloc, *address, bytes, stream);
    return address;
}

void LoggedDevice::free(Address address, Bytes bytes, StreamId stream) {
    device_.free(address, bytes, stream);
    modelled_ns_ += costs_.free_ns(bytes, live_);
    --live_;
    log(DriverCallKind::free, address, bytes, stream);
}

Address LoggedDevice::reserve(Bytes bytes, StreamId stream) {
    const Address address = device_.reserve(bytes, stream);
    modelled_ns_ += costs_.reserve_ns(bytes);
    log(DriverCallKind::reserve, address, bytes, stream);
    return address;
}

void LoggedDevice::unreserve(Address address, Bytes bytes, StreamId stream) {
    device_.unreserve(address, bytes, stream);
    modelled_ns_ += costs_.unreserve_ns(bytes);
    log(DriverCallKind::unreserve, address, bytes, stream);
}

bool LoggedDevice::map(Address address, Bytes bytes, Bytes page, StreamId stream) {
    const bool mapped = device_.map(address, bytes, page, stream);
    modelled_ns_ += costs_.map_ns(bytes, page);
    if (mapped)
        log(DriverCallKind::map, address, bytes, stream);
    else
        ++refused_;
    return mapped;
}

void LoggedDevice::unmap(Address address, Bytes bytes, Bytes page, StreamId stream) {
    device_.unmap(address, bytes, page, stream);
    modelled_ns_ += costs_.unmap_ns(bytes, page);
    log(DriverCallKind::unmap, address, bytes, stream);
}

}  // namespace fragsim
