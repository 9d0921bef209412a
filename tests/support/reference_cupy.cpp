// Reference of CuPy's memory pool (cupy/cuda/memory.pyx), the lowest address among chunks of equal size.
#include "tests/support/reference_parts.hpp"

namespace fragsim::test {
namespace {

class CupyPool final : public ReferencePolicy {
public:
    CupyPool(const ReferenceParameters& p, Device& device) : device_(device), limit_(p.number("size", 0)) {
        if (const double fraction = p.ratio("fraction", 0); fraction > 0)
            limit_ = static_cast<Bytes>(fraction * static_cast<double>(total_of(p, device)));
    }

    std::optional<Placement> allocate(int id, Bytes bytes, int stream) override {
        const Bytes n = round_up(bytes, 512);
        FreeRanges& arena = arenas_[stream];
        auto place = arena.best(n);
        if (place)
            arena.take(*place, n);
        else
            place = get(n);
        if (!place) return {};
        live_[id] = {{*place, n}, stream};
        return live_[id].first;
    }
    void free(int id) override {
        const auto [block, stream] = live_.extract(id).mapped();
        arenas_[stream].walls = starts_;
        arenas_[stream].put(block.address, block.allocated);
    }
    void empty_cache() override {
        for (auto& [stream, arena] : arenas_)
            for (const auto& [start, size] : std::map(arena.ranges)) {
                if (!chunks_.contains(start) || chunks_[start] != size) continue;
                device_.free(start, size, {});
                total_ -= size;
                chunks_.erase(start);
                arena.ranges.erase(start);
            }
    }
    Bytes reserved() const override { return total_; }

private:
    std::optional<Address> get(Bytes n) {
        if (limit_ > 0 && total_ + n > limit_) empty_cache();
        if (limit_ > 0 && total_ + n > limit_) return {};
        auto got = device_.malloc(n, {});
        if (!got) {
            empty_cache();
            got = device_.malloc(n, {});
        }
        if (!got) return {};
        chunks_[*got] = n;
        starts_.insert(*got);
        total_ += n;
        return got;
    }

    Device& device_;
    Bytes limit_, total_ = 0;
    std::map<Address, Bytes> chunks_;  // as the device gave them
    std::set<Address> starts_;
    std::map<int, FreeRanges> arenas_;  // by stream
    std::map<int, std::pair<Placement, int>> live_;
};

}  // namespace

std::unique_ptr<ReferencePolicy> reference_cupy_policy(
    const std::string& name, const ReferenceParameters& parameters, Device& device) {
    return name == "cupy-pool" ? std::make_unique<CupyPool>(parameters, device) : nullptr;
}

}  // namespace fragsim::test
