#include "lib/device/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fragsim {

using cuda::kOutOfMemory;
using cuda::kSuccess;

namespace {

constexpr Bytes kPage = 2 * kMiB;  // what the driver gives out physically

cuda::AllocationProperties pinned_on(int device) {
    cuda::AllocationProperties properties{};
    properties.type = cuda::kPinned;
    properties.location = {cuda::kOnDevice, device};
    return properties;
}

std::size_t unsigned_size(Bytes bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace

// --- opening and closing --------------------------------------------------------------------------------------------

CudaDevice::CudaDevice(const Config& config) : config_(config), driver_(cuda::Driver::get()) {
    int count = 0;
    driver_.check(driver_.cuDeviceGetCount(&count), "cuDeviceGetCount");
    if (config.ordinal < 0 || config.ordinal >= count)
        throw Error(ErrorCode::environment, fmt::format("no CUDA device {} on this machine", config.ordinal),
            count == 0 ? "there is none" : fmt::format("there are 0 to {}", count - 1));
    driver_.check(driver_.cuDeviceGet(&device_, config.ordinal), "cuDeviceGet");
    char name[256] = "";
    driver_.check(driver_.cuDeviceGetName(name, sizeof(name), device_), "cuDeviceGetName");
    cuda::Context context = nullptr;
    driver_.check(driver_.cuDevicePrimaryCtxRetain(&context, device_), "cuDevicePrimaryCtxRetain");
    driver_.check(driver_.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    std::size_t free = 0, total = 0;
    driver_.check(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo");
    card_ = {name, 0, static_cast<Bytes>(total), static_cast<Bytes>(free)};
    driver_.check(driver_.cuDriverGetVersion(&card_.driver_version), "cuDriverGetVersion");
    if (config.leave) fill_card(*config.leave);
}

// Errors are of no interest any more; the context goes with its memory if something is left.
CudaDevice::~CudaDevice() {
    give_back_all();
    for (const cuda::DevicePointer block : ballast_) driver_.cuMemFree(block);
    for (const auto& [stream, event] : events_) driver_.cuEventDestroy(event);
    for (const auto& [id, stream] : streams_) driver_.cuStreamDestroy(stream);
    driver_.cuDevicePrimaryCtxRelease(device_);
}

void CudaDevice::give_back_all() {
    driver_.cuCtxSynchronize();
    for (const auto& [page, size] : pages_) driver_.cuMemUnmap(page, unsigned_size(size));
    for (const auto& [page, handle] : memory_) driver_.cuMemRelease(handle);
    for (const auto& [range, size] : ranges_) driver_.cuMemAddressFree(range, unsigned_size(size));
    for (const auto& [segment, size] : segments_) driver_.cuMemFree(segment);
    pages_.clear();
    memory_.clear();
    ranges_.clear();
    segments_.clear();
    used_ = 0;
    has_work_ = false;
}

// Blocks of falling size, so that what is left is exact to a page.
void CudaDevice::fill_card(Bytes leave) {
    for (Bytes block = 16 * kGiB; block >= kPage;) {
        std::size_t free = 0, total = 0;
        driver_.check(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo");
        cuda::DevicePointer address = 0;
        if (static_cast<Bytes>(free) - leave < block ||
            driver_.cuMemAlloc(&address, unsigned_size(block)) != kSuccess) {
            block /= 2;
            continue;
        }
        ballast_.push_back(address);
    }
}

// --- segments -------------------------------------------------------------------------------------------------------

std::optional<Address> CudaDevice::malloc(Bytes bytes, StreamId) {
    const Bytes physical = round_up(bytes, kPage);
    if (bytes > card_.free || !has_room(physical)) return {};
    cuda::DevicePointer address = 0;
    const cuda::Status status = driver_.cuMemAlloc(&address, unsigned_size(bytes));
    if (status == kOutOfMemory) return {};
    driver_.check(status, "cuMemAlloc", bytes);
    segments_[address] = bytes;
    used_ += physical;
    return address;
}

void CudaDevice::free(Address address, Bytes bytes, StreamId) {
    finish_work();
    driver_.check(driver_.cuMemFree(address), "cuMemFree", bytes);
    segments_.erase(address);
    used_ -= round_up(bytes, kPage);
}

// --- virtual memory -------------------------------------------------------------------------------------------------

Address CudaDevice::reserve(Bytes bytes, StreamId) {
    const Bytes size = round_up(bytes, kPage);
    cuda::DevicePointer address = 0;
    driver_.check(driver_.cuMemAddressReserve(&address, unsigned_size(size), 0, 0, 0), "cuMemAddressReserve", size);
    ranges_[address] = size;
    return address;
}

void CudaDevice::unreserve(Address address, Bytes bytes, StreamId) {
    const Bytes size = round_up(bytes, kPage);
    driver_.check(driver_.cuMemAddressFree(address, unsigned_size(size)), "cuMemAddressFree", size);
    ranges_.erase(address);
}

bool CudaDevice::map(Address address, Bytes bytes, Bytes page, StreamId) {
    if (bytes > card_.free || !has_room(bytes)) return false;
    const cuda::AllocationProperties properties = pinned_on(device_);
    Bytes done = 0;
    for (; done < bytes; done += page) {
        cuda::MemoryHandle handle = 0;
        const cuda::Status status = driver_.cuMemCreate(&handle, unsigned_size(page), &properties, 0);
        if (status == kOutOfMemory) break;
        driver_.check(status, "cuMemCreate", page);
        memory_[address + static_cast<Address>(done)] = handle;
        put(address + static_cast<Address>(done), page, handle);
        used_ += page;
    }
    if (done < bytes) {
        if (done > 0) unmap_pages(address, done, page);
        return false;
    }
    grant_access(address, bytes);
    return true;
}

void CudaDevice::unmap(Address address, Bytes bytes, Bytes page, StreamId) {
    finish_work();
    unmap_pages(address, bytes, page);
}

void CudaDevice::unmap_pages(Address address, Bytes bytes, Bytes page) {
    for (Bytes done = 0; done < bytes; done += page) {
        const Address at = address + static_cast<Address>(done);
        driver_.check(driver_.cuMemUnmap(at, unsigned_size(page)), "cuMemUnmap", page);
        pages_.erase(at);
        driver_.check(driver_.cuMemRelease(memory_.at(at)), "cuMemRelease", page);
        memory_.erase(at);
        used_ -= page;
    }
}

void CudaDevice::move(Address from, Address to, Bytes page, StreamId) {
    finish_work();
    driver_.check(driver_.cuMemUnmap(from, unsigned_size(page)), "cuMemUnmap", page);
    pages_.erase(from);
    const cuda::MemoryHandle handle = memory_.at(from);
    memory_.erase(from);
    memory_[to] = handle;
    put(to, page, handle);
    grant_access(to, page);
}

void CudaDevice::alias(Address from, Address to, Bytes bytes, Bytes page, StreamId) {
    for (Bytes done = 0; done < bytes; done += page)
        put(to + static_cast<Address>(done), page, memory_.at(from + static_cast<Address>(done)));
    grant_access(to, bytes);
}

void CudaDevice::unalias(Address to, Bytes bytes, Bytes page, StreamId) {
    finish_work();
    for (Bytes done = 0; done < bytes; done += page) {
        const Address at = to + static_cast<Address>(done);
        driver_.check(driver_.cuMemUnmap(at, unsigned_size(page)), "cuMemUnmap", page);
        pages_.erase(at);
    }
}

void CudaDevice::put(Address address, Bytes page, cuda::MemoryHandle handle) {
    driver_.check(driver_.cuMemMap(address, unsigned_size(page), 0, handle, 0), "cuMemMap", page);
    pages_[address] = page;
}

void CudaDevice::grant_access(Address address, Bytes bytes) {
    const cuda::AccessDescription access{{cuda::kOnDevice, device_}, cuda::kReadWrite};
    driver_.check(driver_.cuMemSetAccess(address, unsigned_size(bytes), &access, 1), "cuMemSetAccess", bytes);
}

// --- streams --------------------------------------------------------------------------------------------------------

cuda::Stream CudaDevice::stream(StreamId id) {
    cuda::Stream& stream = streams_[id.value];
    if (!stream) driver_.check(driver_.cuStreamCreate(&stream, cuda::kStreamNonBlocking), "cuStreamCreate");
    return stream;
}

void CudaDevice::record(StreamId id) {
    cuda::Event& event = events_[id.value];
    if (!event) driver_.check(driver_.cuEventCreate(&event, cuda::kEventDisableTiming), "cuEventCreate");
    driver_.check(driver_.cuEventRecord(event, stream(id)), "cuEventRecord");
}

// A stream that was never recorded has nothing to wait for.
void CudaDevice::wait(StreamId waiter, StreamId on) {
    const auto event = events_.find(on.value);
    if (event != events_.end())
        driver_.check(driver_.cuStreamWaitEvent(stream(waiter), event->second, 0), "cuStreamWaitEvent");
}

void CudaDevice::synchronize(std::optional<StreamId> id) {
    if (id)
        driver_.check(driver_.cuStreamSynchronize(stream(*id)), "cuStreamSynchronize");
    else
        driver_.check(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
}

void CudaDevice::finish_work() {
    if (!has_work_) return;
    has_work_ = false;
    driver_.check(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
}

// --- the driver's pool ----------------------------------------------------------------------------------------------

class CudaDevice::Pool final : public StreamOrderedPool {
public:
    Pool(CudaDevice& device, const PoolProperties& wanted) : device_(device), driver_(device.driver_) {
        cuda::PoolProperties properties{};
        properties.type = cuda::kPinned;
        properties.location = {cuda::kOnDevice, device.device_};
        // The capacity is whole chunks for a pool.
        std::optional<Bytes> most = wanted.max_size;
        if (device.config_.capacity) most = std::min(most.value_or(*device.config_.capacity), *device.config_.capacity);
        properties.max_size = unsigned_size(most.value_or(0));
        driver_.check(driver_.cuMemPoolCreate(&pool_, &properties), "cuMemPoolCreate");
        set(cuda::kFollowEventDependencies, wanted.follow_event_dependencies);
        set(cuda::kAllowOpportunistic, wanted.allow_opportunistic);
        set(cuda::kAllowInternalDependencies, wanted.allow_internal_dependencies);
        std::uint64_t threshold = static_cast<std::uint64_t>(wanted.release_threshold);
        driver_.check(
            driver_.cuMemPoolSetAttribute(pool_, cuda::kReleaseThreshold, &threshold), "cuMemPoolSetAttribute");
    }
    // Frees what is left of it first.
    ~Pool() override {
        driver_.cuCtxSynchronize();
        for (const cuda::DevicePointer address : live_)
            if (address != 0) driver_.cuMemFreeAsync(address, nullptr);
        driver_.cuCtxSynchronize();
        driver_.cuMemPoolDestroy(pool_);
    }

    std::optional<Allocation> allocate(Bytes bytes, StreamId stream) override {
        if (bytes > device_.card_.free) return {};
        cuda::DevicePointer address = 0;
        const cuda::Status status =
            driver_.cuMemAllocFromPoolAsync(&address, unsigned_size(bytes), pool_, device_.stream(stream));
        if (status == kOutOfMemory) return {};
        driver_.check(status, "cuMemAllocFromPoolAsync", bytes);
        std::uint32_t handle = static_cast<std::uint32_t>(live_.size());
        if (unused_.empty()) {
            live_.push_back(address);
        } else {
            handle = unused_.back();
            unused_.pop_back();
            live_[handle] = address;
        }
        return Allocation{address, round_up(bytes, 512), handle};
    }
    void free(const Allocation& allocation, StreamId stream) override {
        driver_.check(
            driver_.cuMemFreeAsync(allocation.address, device_.stream(stream)), "cuMemFreeAsync", allocation.size);
        live_[allocation.handle] = 0;
        unused_.push_back(allocation.handle);
    }
    void synchronized(std::optional<StreamId> stream) override { device_.synchronize(stream); }
    void trim_to(Bytes keep) override {
        driver_.check(driver_.cuMemPoolTrimTo(pool_, unsigned_size(keep)), "cuMemPoolTrimTo");
    }
    Bytes reserved() const override {
        std::uint64_t bytes = 0;
        driver_.check(driver_.cuMemPoolGetAttribute(pool_, cuda::kReservedCurrent, &bytes), "cuMemPoolGetAttribute");
        return static_cast<Bytes>(bytes);
    }

private:
    void set(cuda::PoolAttribute attribute, bool on) {
        int value = on;
        driver_.check(driver_.cuMemPoolSetAttribute(pool_, attribute, &value), "cuMemPoolSetAttribute");
    }

    CudaDevice& device_;
    const cuda::Driver& driver_;
    cuda::MemoryPool pool_ = nullptr;
    std::vector<cuda::DevicePointer> live_;  // by handle; 0: unused
    std::vector<std::uint32_t> unused_;
};

std::unique_ptr<StreamOrderedPool> CudaDevice::create_pool(const PoolProperties& properties) {
    return std::make_unique<Pool>(*this, properties);
}

}  // namespace fragsim
