// A real GPU, through the CUDA driver. Every call is checked; out of memory is an answer, everything else an
// Error(environment). What was taken is given back when the device goes away, also when an exception ends the run; when
// the process is killed the driver does it. The card's settings are never touched.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "lib/device/cuda_driver.hpp"
#include "lib/device/device.hpp"

namespace fragsim {

class CudaDevice final : public Device {
public:
    struct Config {
        int ordinal = 0;
        std::optional<Bytes> capacity;  // refuse what would exceed it, without asking the driver
        std::optional<Bytes> leave;     // fill the card until only this much is free, so that the driver itself refuses
    };
    explicit CudaDevice(const Config& config);
    ~CudaDevice() override;

    struct Card {
        std::string name;
        int driver_version;  // of CUDA, 1000 major + 10 minor
        Bytes total, free;   // free: when the device was opened
    };
    const Card& card() const { return card_; }
    int ordinal() const { return device_; }

    std::optional<Address> malloc(Bytes bytes, StreamId) override;
    void free(Address address, Bytes bytes, StreamId) override;
    Address reserve(Bytes bytes, StreamId) override;
    void unreserve(Address address, Bytes bytes, StreamId) override;
    bool map(Address address, Bytes bytes, Bytes page, StreamId) override;
    void unmap(Address address, Bytes bytes, Bytes page, StreamId) override;
    void move(Address from, Address to, Bytes page, StreamId) override;
    void alias(Address from, Address to, Bytes bytes, Bytes page, StreamId) override;
    void unalias(Address to, Bytes bytes, Bytes page, StreamId) override;
    void record(StreamId stream) override;
    void wait(StreamId waiter, StreamId on) override;
    void synchronize(std::optional<StreamId> stream) override;
    std::unique_ptr<StreamOrderedPool> create_pool(const PoolProperties& properties) override;
    Bytes total_memory() const override { return card_.total; }

    // Everything that malloc, reserve and map gave, as if the program had ended. Pools are given back by their owners.
    void give_back_all();

    // Made when it is first asked for.
    cuda::Stream stream(StreamId id);
    // Kernels were launched: memory is not unmapped or moved before they are done.
    void note_work() { has_work_ = true; }

private:
    class Pool;

    bool has_room(Bytes bytes) const { return !config_.capacity || bytes <= *config_.capacity - used_; }
    void fill_card(Bytes leave);
    void finish_work();
    void grant_access(Address address, Bytes bytes);
    void put(Address address, Bytes page, cuda::MemoryHandle handle);
    void unmap_pages(Address address, Bytes bytes, Bytes page);

    Config config_;
    const cuda::Driver& driver_;
    int device_ = 0;
    Card card_{};
    Bytes used_ = 0;  // physical, in whole pages of 2 MiB
    bool has_work_ = false;
    std::vector<cuda::DevicePointer> ballast_;
    std::unordered_map<Address, Bytes> segments_;             // of malloc
    std::map<Address, Bytes> ranges_;                         // of reserve
    std::unordered_map<Address, cuda::MemoryHandle> memory_;  // by page: what map or move put there
    std::map<Address, Bytes> pages_;                          // by page of memory_ and aliases: its size
    std::map<std::uint32_t, cuda::Stream> streams_;
    std::map<std::uint32_t, cuda::Event> events_;  // by stream: its last mark
};

}  // namespace fragsim
