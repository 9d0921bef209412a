#include "lib/device/logged_device.hpp"

namespace fragsim {

std::optional<Address> LoggedDevice::malloc(Bytes bytes, StreamId stream) {
    const std::optional<Address> address = device_.malloc(bytes, stream);
    modelled_ns_ += costs_.nanoseconds(DriverCallKind::malloc, bytes, live_);
    if (!address) {
        ++refused_;
        return {};
    }
    ++live_;
    calls_.push_back({op_, DriverCallKind::malloc, stream, bytes, *address});
    return address;
}

void LoggedDevice::free(Address address, Bytes bytes, StreamId stream) {
    device_.free(address, bytes, stream);
    modelled_ns_ += costs_.nanoseconds(DriverCallKind::free, bytes, live_);
    --live_;
    calls_.push_back({op_, DriverCallKind::free, stream, bytes, address});
}

}  // namespace fragsim
