// The CUDA device does what the host model promises for it: memory at every address that was mapped, the same memory at
// an alias, the contents kept by a move, refusals as answers, everything given back. Exits with 77 where there is no
// GPU. A program of its own, without a test framework, so that it can be carried to a machine that has a GPU.
#include <cstdio>

#include "lib/core/error.hpp"
#include "lib/device/cuda_device.hpp"
#include "lib/device/cuda_touch.hpp"

using namespace fragsim;

namespace {

int failures = 0;

void check(bool holds, const char* what) {
    std::printf("%s: %s\n", holds ? "ok" : "FAILED", what);
    failures += !holds;
}

constexpr StreamId kStream{0}, kOther{1};
constexpr Bytes kPage = 2 * kMiB;

// Each test opens the device anew, and nothing may be left of the one before.
template <class Test>
void on_device(CudaDevice::Config config, Test test) {
    CudaDevice device(config);
    test(device);
}

void segments(CudaDevice& device) {
    const auto first = device.malloc(kPage, kStream), second = device.malloc(kPage + 1, kStream);
    check(first && second && *first != *second, "two segments are two places");
    check(!device.malloc(device.card().total * 2, kStream), "more than the card has is refused");
    device.free(*first, kPage, kStream);
    device.free(*second, kPage + 1, kStream);
}

void virtual_memory(CudaDevice& device) {
    const cuda::Touch touch;
    const cuda::Stream stream = device.stream(kStream);
    const Address range = device.reserve(16 * kPage, kStream), other = device.reserve(4 * kPage, kStream);
    check(device.map(range, 4 * kPage, kPage, kStream), "four pages are mapped");
    touch.fill(range, 4 * kPage, 7, stream);
    device.note_work();
    device.alias(range + kPage, other, 2 * kPage, kPage, kStream);
    // Words count from the start of what is filled, so the alias is read as the pages in the middle.
    touch.fill(other, 2 * kPage, 9, stream);
    touch.check(range + kPage, 2 * kPage, 9, stream);
    device.note_work();
    check(touch.spoilt().words == 0, "what is written at an alias is there at the first address");
    device.unalias(other, 2 * kPage, kPage, kStream);
    touch.fill(range, kPage, 11, stream);
    device.note_work();
    device.move(range, range + 8 * kPage, kPage, kStream);
    touch.check(range + 8 * kPage, kPage, 11, stream);
    check(touch.spoilt().words == 0, "a page that moves keeps what is in it");
    device.unmap(range + kPage, 3 * kPage, kPage, kStream);
    device.unmap(range + 8 * kPage, kPage, kPage, kStream);
    device.unreserve(range, 16 * kPage, kStream);
    device.unreserve(other, 4 * kPage, kStream);
}

void overlapping_buffers(CudaDevice& device) {
    const cuda::Touch touch;
    const cuda::Stream stream = device.stream(kStream);
    const Address segment = *device.malloc(kPage, kStream);
    touch.fill(segment, kMiB, 1, stream);
    touch.fill(segment + 512, kMiB, 1, stream);  // shifted over itself
    touch.check(segment, kMiB, 1, stream);
    device.note_work();
    const cuda::Touch::Spoilt spoilt = touch.spoilt();
    check(spoilt.words == (kMiB - 512) / 4 && spoilt.first_pattern == 1, "buffers that share memory are found");
    device.free(segment, kPage, kStream);
}

void order(CudaDevice& device) {
    const cuda::Touch touch;
    const Address segment = *device.malloc(64 * kMiB, kStream);
    bool kept = true;
    for (std::uint32_t round = 1; round <= 50; ++round) {
        touch.fill(segment, 64 * kMiB, round, device.stream(kStream));
        device.record(kStream);
        device.wait(kOther, kStream);
        touch.check(segment, 64 * kMiB, round, device.stream(kOther));
        device.record(kOther);
        device.wait(kStream, kOther);
        kept = kept && touch.spoilt().words == 0;
    }
    device.note_work();
    check(kept, "a stream that waits sees what the other has written");
    device.free(segment, 64 * kMiB, kStream);
}

void pool(CudaDevice& device) {
    const auto pool = device.create_pool({});
    const auto block = pool->allocate(kMiB, kStream);
    check(block && pool->reserved() == 32 * kMiB, "a pool grows by 32 MiB");
    pool->free(*block, kStream);
    pool->synchronized(kStream);
    check(pool->reserved() == 0, "with no threshold a synchronisation gives it back");
    check(pool->allocate(kMiB, kStream).has_value(), "a block is left to the pool's end");
}

void capacity(CudaDevice& device) {
    const auto most = device.malloc(64 * kMiB, kStream);
    check(most.has_value(), "the capacity can be used");
    check(!device.malloc(kPage, kStream), "beyond the capacity memory is refused");
    const Address range = device.reserve(kPage, kStream);
    check(!device.map(range, kPage, kPage, kStream), "and so are pages");
    device.give_back_all();
    check(device.malloc(64 * kMiB, kStream).has_value(), "what was given back can be had again");
}

void full_card(CudaDevice& device) {
    check(!device.malloc(2 * kGiB, kStream), "the driver of a full card refuses");
    check(device.malloc(256 * kMiB, kStream).has_value(), "what was left can be had");
}

}  // namespace

int main() {
    Bytes free_before = 0;
    try {
        free_before = CudaDevice({}).card().free;
    } catch (const Error& error) {
        std::printf("skipped: %s\n", error.what());
        return 77;
    }
    try {
        on_device({}, segments);
        on_device({}, virtual_memory);
        on_device({}, overlapping_buffers);
        on_device({}, order);
        on_device({}, pool);
        on_device({.ordinal = 0, .capacity = 64 * kMiB, .leave = {}}, capacity);
        on_device({.ordinal = 0, .capacity = {}, .leave = kGiB}, full_card);
        try {
            CudaDevice(CudaDevice::Config{.ordinal = 99, .capacity = {}, .leave = {}});
            check(false, "a device that is not there is an error");
        } catch (const Error& error) {
            check(error.code() == ErrorCode::environment, "a device that is not there is an error");
        }
        check(CudaDevice({}).card().free >= free_before - 64 * kMiB, "in the end everything is given back");
    } catch (const Error& error) {
        std::printf("FAILED: %s\n", error.what());
        return 1;
    }
    return failures > 0;
}
