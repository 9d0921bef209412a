#include "lib/device/cuda_calibrate.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <limits>
#include <numeric>

namespace fragsim {
namespace {

constexpr int kRuns = 20, kWarmUp = 3, kRounds = 4;
constexpr int kCrowd = 100;  // live allocations of a "crowded" card
constexpr Bytes kChunk = StreamOrderedPool::kChunk;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

template <class Call>
double time_ns(Call call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

// The median price of each of several calls that are made one after the other, again and again.
template <std::size_t N, class Round>
std::array<double, N> medians(Round round) {
    std::array<std::vector<double>, N> all;
    for (int run = 0; run < kWarmUp + kRuns; ++run) {
        const std::array<double, N> once = round();
        for (std::size_t i = 0; i < N && run >= kWarmUp; ++i) all[i].push_back(once[i]);
    }
    std::array<double, N> result;
    for (std::size_t i = 0; i < N; ++i) result[i] = median(std::move(all[i]));
    return result;
}

class Calibration {
public:
    explicit Calibration(CudaDevice& device) : device_(device) {
        properties_.type = cuda::kPinned;
        properties_.location = {cuda::kOnDevice, device.ordinal()};
        access_ = {properties_.location, cuda::kReadWrite};
        for (const Bytes size :
            {2 * kMiB, 8 * kMiB, 20 * kMiB, 64 * kMiB, 256 * kMiB, kGiB, 8 * kGiB, 32 * kGiB, 64 * kGiB})
            if (size <= device.card().free / 2) sizes_.push_back(size);
    }

    CostModel::Profile measure() {
        // The largest first, as long as the card is fresh.
        for (auto size = sizes_.rbegin(); size != sizes_.rend(); ++size) segments(*size);
        for (const Bytes size : {512 * kKiB, 64 * kKiB, 4 * kKiB}) segments(size);
        std::reverse(profile_.malloc.begin(), profile_.malloc.end());
        std::reverse(profile_.free.begin(), profile_.free.end());
        for (const Bytes size : sizes_) virtual_memory(size);
        access_by_page();
        pools();
        order();
        return profile_;
    }

private:
    static constexpr StreamId kStream{0}, kOther{1};

    // A replay mostly gets memory it has not had, so as many blocks as fit are got in a row, and then given back.
    std::size_t in_a_row(Bytes size) const {
        if (size < 2 * kMiB) return 4 * kRuns;
        return static_cast<std::size_t>(std::clamp<Bytes>(device_.card().free / 2 / size, 1, kRuns));
    }
    std::array<double, 2> malloc_and_free(Bytes size) {
        std::vector<double> malloc, free;
        // What was freed a moment ago has to be cleared before it is given out again, which a replay seldom waits for:
        // large blocks are got once.
        for (int round = 0; round < (size < kGiB ? kRounds : 1); ++round) {
            std::vector<Address> blocks;
            for (std::size_t i = 0; i < in_a_row(size); ++i) {
                std::optional<Address> address;
                malloc.push_back(time_ns([&] { address = device_.malloc(size, kStream); }));
                if (address) blocks.push_back(*address);
            }
            for (const Address block : blocks) free.push_back(time_ns([&] { device_.free(block, size, kStream); }));
        }
        // Below 2 MiB many share a page, and one in many pays for it.
        if (size < 2 * kMiB) return {mean(malloc), mean(free)};
        return {median(std::move(malloc)), median(std::move(free))};
    }
    void segments(Bytes size) {
        const auto alone = malloc_and_free(size);
        std::vector<Address> crowd;
        for (int i = 0; i < kCrowd; ++i)
            if (const auto address = device_.malloc(20 * kMiB, kStream)) crowd.push_back(*address);
        const auto crowded = malloc_and_free(size);
        for (const Address address : crowd) device_.free(address, 20 * kMiB, kStream);
        profile_.malloc.push_back({size, alone[0], crowded[0]});
        profile_.free.push_back({size, alone[1], crowded[1]});
    }

    // The parts of map and unmap, apart, for ranges of one page.
    void virtual_memory(Bytes size) {
        struct Piece {
            cuda::DevicePointer range = 0;
            cuda::MemoryHandle handle = 0;
        };
        std::array<std::vector<double>, 7> ns;
        const auto bytes = static_cast<std::size_t>(size);
        for (int round = 0; round < kRounds; ++round) {
            std::vector<Piece> pieces(in_a_row(size));
            const auto each = [&](std::size_t call, const char* name, auto make) {
                for (Piece& piece : pieces) ns[call].push_back(checked(name, size, [&] { return make(piece); }));
            };
            each(0, "cuMemAddressReserve",
                [&](Piece& p) { return driver_.cuMemAddressReserve(&p.range, bytes, 0, 0, 0); });
            each(1, "cuMemCreate", [&](Piece& p) { return driver_.cuMemCreate(&p.handle, bytes, &properties_, 0); });
            each(2, "cuMemMap", [&](Piece& p) { return driver_.cuMemMap(p.range, bytes, 0, p.handle, 0); });
            each(3, "cuMemSetAccess", [&](Piece& p) { return driver_.cuMemSetAccess(p.range, bytes, &access_, 1); });
            each(4, "cuMemUnmap", [&](Piece& p) { return driver_.cuMemUnmap(p.range, bytes); });
            each(5, "cuMemRelease", [&](Piece& p) { return driver_.cuMemRelease(p.handle); });
            each(6, "cuMemAddressFree", [&](Piece& p) { return driver_.cuMemAddressFree(p.range, bytes); });
        }
        CostCurve* const curves[] = {&profile_.reserve, &profile_.create, &profile_.map, &profile_.set_access,
            &profile_.unmap, &profile_.release, &profile_.unreserve};
        for (std::size_t i = 0; i < ns.size(); ++i) {
            const double price = median(std::move(ns[i]));
            curves[i]->push_back({size, price, price});
        }
    }

    // A range of many small pages.
    void access_by_page() {
        constexpr Bytes kPage = 2 * kMiB, kPages = 64;
        std::vector<double> ns;
        for (int round = 0; round < kRuns; ++round) {
            cuda::DevicePointer range = 0;
            std::array<cuda::MemoryHandle, kPages> handles{};
            driver_.check(driver_.cuMemAddressReserve(&range, kPages * kPage, 0, 0, 0), "cuMemAddressReserve");
            const auto at = [&](std::size_t i) { return range + i * static_cast<cuda::DevicePointer>(kPage); };
            for (std::size_t i = 0; i < handles.size(); ++i) {
                driver_.check(driver_.cuMemCreate(&handles[i], kPage, &properties_, 0), "cuMemCreate", kPage);
                driver_.check(driver_.cuMemMap(at(i), kPage, 0, handles[i], 0), "cuMemMap", kPage);
            }
            ns.push_back(checked("cuMemSetAccess", kPages * kPage,
                [&] { return driver_.cuMemSetAccess(range, kPages * kPage, &access_, 1); }));
            for (std::size_t i = 0; i < handles.size(); ++i) {
                driver_.check(driver_.cuMemUnmap(at(i), kPage), "cuMemUnmap", kPage);
                driver_.check(driver_.cuMemRelease(handles[i]), "cuMemRelease", kPage);
            }
            driver_.check(driver_.cuMemAddressFree(range, kPages * kPage), "cuMemAddressFree");
        }
        const double first = profile_.set_access.front().alone_ns;
        profile_.access_page_ns = std::max(0.0, (median(std::move(ns)) - first) / (kPages - 1));
    }

    template <class Call>
    double checked(const char* name, Bytes size, Call call) {
        cuda::Status status = cuda::kSuccess;
        const double took = time_ns([&] { status = call(); });
        driver_.check(status, name, size);
        return took;
    }

    void pools() {
        PoolProperties keep;
        keep.release_threshold = std::numeric_limits<Bytes>::max();
        {
            const auto pool = device_.create_pool(keep);
            const auto ns = medians<2>([&] {
                std::optional<StreamOrderedPool::Allocation> block;
                const double hit = time_ns([&] { block = pool->allocate(kMiB, kStream); });
                return std::array{hit, time_ns([&] { pool->free(*block, kStream); })};
            });
            profile_.pool_hit_ns = ns[0];
            profile_.pool_free_ns = ns[1];
        }
        std::vector<Bytes> sizes{kChunk};
        std::copy_if(sizes_.begin(), sizes_.end(), std::back_inserter(sizes), [](Bytes size) { return size > kChunk; });
        for (const Bytes size : sizes) {
            const auto ns = medians<1>([&] {
                const auto pool = device_.create_pool(keep);
                std::optional<StreamOrderedPool::Allocation> block;
                const double grown = time_ns([&] { block = pool->allocate(size, kStream); });
                if (block) pool->free(*block, kStream);
                return std::array{grown};
            });
            const double more = std::max(0.0, ns[0] - profile_.pool_hit_ns);
            profile_.pool_grow.push_back({size, more, more});
        }
        // Every second of 16 chunks is freed; eight chunks in a row then need all of those to move.
        const auto ns = medians<1>([&] {
            const auto pool = device_.create_pool(keep);
            std::vector<StreamOrderedPool::Allocation> blocks;
            for (int i = 0; i < 16; ++i)
                if (const auto block = pool->allocate(kChunk, kStream)) blocks.push_back(*block);
            for (std::size_t i = 0; i < blocks.size(); i += 2) pool->free(blocks[i], kStream);
            pool->synchronized(kStream);
            std::optional<StreamOrderedPool::Allocation> moved;
            const double took = time_ns([&] { moved = pool->allocate(8 * kChunk, kStream); });
            if (moved) pool->free(*moved, kStream);
            for (std::size_t i = 1; i < blocks.size(); i += 2) pool->free(blocks[i], kStream);
            return std::array{took};
        });
        profile_.pool_move_ns = std::max(0.0, ns[0] - profile_.pool_hit_ns) / 8;
    }

    // Each again and again by itself, as a policy makes them.
    void order() {
        const auto price = [&](auto call) {
            for (int i = 0; i < 100; ++i) call();
            std::vector<double> ns;
            for (int i = 0; i < 1000; ++i) ns.push_back(time_ns(call));
            device_.synchronize({});
            return median(std::move(ns));
        };
        profile_.record_ns = price([&] { device_.record(kStream); });
        profile_.wait_ns = price([&] { device_.wait(kOther, kStream); });
        profile_.synchronize_ns = price([&] { device_.synchronize(kStream); });
    }

    CudaDevice& device_;
    const cuda::Driver& driver_ = cuda::Driver::get();
    cuda::AllocationProperties properties_{};
    cuda::AccessDescription access_{};
    std::vector<Bytes> sizes_;
    CostModel::Profile profile_{};
};

}  // namespace

CostModel::Profile measure_costs(CudaDevice& device) { return Calibration(device).measure(); }

}  // namespace fragsim
