// Reference of PyTorch's backend:cudaMallocAsync (spec/policies.md, section 1.5): the pool that keeps what it has, a
// limit before it, and a stream of its own for memory that several streams used.
#include <cmath>
#include <limits>

#include "tests/support/reference_async_pool.hpp"
#include "tests/support/reference_parts.hpp"

namespace fragsim::test {
namespace {

class TorchAsync final : public ReferencePolicy {
public:
    TorchAsync(const ReferenceParameters& p, Device& device)
        : pool_({Bytes{1} << 60, p.flag("reuse_allow_opportunistic", true),
                    p.flag("reuse_allow_internal_dependencies", true), 0, p.word("gpu_progress", "idle") == "idle"},
              device),
          trims_(p.flag("trim_retry", false)) {
        const double fraction = p.ratio("per_process_memory_fraction", 1);
        if (fraction < 1) limit_ = static_cast<Bytes>(std::floor(fraction * static_cast<double>(total_of(p, device))));
    }

    std::optional<Placement> allocate(int id, Bytes bytes, int stream) override {
        Bytes used = bytes;
        for (const auto& [other, block] : live_) used += block.requested;
        asked_ = used <= limit_;
        if (!asked_) return {};
        const auto place = pool_.allocate(id, bytes, stream);
        if (place) live_[id] = {bytes, stream, false};
        return place;
    }
    void record_stream(int id, int stream) override {
        Block& block = live_.at(id);
        block.shared = block.shared || stream != block.stream;
    }
    void free(int id) override {
        const Block block = live_.extract(id).mapped();
        pool_.free(id, block.shared ? kHelper : block.stream);
    }
    void synchronize(std::optional<int> stream) override { pool_.synchronize(stream); }
    void empty_cache() override { pool_.empty_cache(); }
    void wait(int id) override {
        live_.at(id).shared = true;
        live_.at(id).requested = 0;
    }
    bool tries_again() const override { return trims_ && asked_; }
    bool make_room() override {
        pool_.empty_cache();
        return true;
    }
    Bytes reserved() const override { return pool_.reserved(); }

private:
    static constexpr int kHelper = -1;
    struct Block {
        Bytes requested;
        int stream;
        bool shared;  // used on another stream, too
    };
    ReferenceAsyncPool pool_;
    const bool trims_;
    bool asked_ = false;  // the pool, for the last request
    Bytes limit_ = std::numeric_limits<Bytes>::max();
    std::map<int, Block> live_;
};

}  // namespace

std::unique_ptr<ReferencePolicy> reference_torch_async_policy(
    const std::string& name, const ReferenceParameters& parameters, Device& device) {
    return name == "torch-async" ? std::make_unique<TorchAsync>(parameters, device) : nullptr;
}

}  // namespace fragsim::test
