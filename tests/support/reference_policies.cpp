#include "tests/support/reference_policies.hpp"

#include <utility>
#include <vector>

#include "lib/core/error.hpp"
#include "tests/support/reference_parts.hpp"
#include "tests/support/truth.hpp"

namespace fragsim::test {
namespace {

class AsPolicy final : public Policy {
public:
    explicit AsPolicy(std::unique_ptr<ReferencePolicy> reference) : reference_(std::move(reference)) {}

    std::optional<Placement> allocate(BufferId buffer, const Request& request) override {
        const auto attempt = [&] {
            return reference_->allocate(
                static_cast<int>(buffer.value), request.bytes, static_cast<int>(request.stream.value));
        };
        const auto placement = attempt();
        if (placement || !reference_->tries_again()) return placement;
        const bool completed = !waiting_.empty();
        for (const BufferId freed : std::exchange(waiting_, {})) free(freed);
        return reference_->make_room() || completed ? attempt() : std::nullopt;
    }
    void free(BufferId buffer) override { reference_->free(static_cast<int>(buffer.value)); }
    void free_requested(BufferId buffer) override {
        reference_->wait(static_cast<int>(buffer.value));
        waiting_.push_back(buffer);
    }
    void free_completed(BufferId buffer) override {
        if (std::erase(waiting_, buffer) == 1) free(buffer);
    }
    void record_stream(BufferId buffer, StreamId stream) override {
        reference_->record_stream(static_cast<int>(buffer.value), static_cast<int>(stream.value));
    }
    void empty_cache() override { reference_->empty_cache(); }
    void synchronize(std::optional<StreamId> stream) override {
        reference_->synchronize(stream ? std::optional(static_cast<int>(stream->value)) : std::nullopt);
    }

    const AllocatorStats& stats() const override {
        stats_.reserved_bytes.all.current = reference_->reserved();
        return stats_;
    }
    Bytes largest_free() const override { return 0; }
    void free_sizes(std::vector<Bytes>&) const override {}
    MemoryPicture picture() const override { return {}; }

private:
    std::unique_ptr<ReferencePolicy> reference_;
    std::vector<BufferId> waiting_;
    mutable AllocatorStats stats_;
};

}  // namespace

std::unique_ptr<Policy> reference_as_policy(const std::string& spec, std::optional<Bytes> capacity, Device& device) {
    auto reference = reference_policy(spec, capacity, device);
    FRAGSIM_ASSERT(reference != nullptr);
    return std::make_unique<AsPolicy>(std::move(reference));
}

std::unique_ptr<ReferencePolicy> reference_policy(
    const std::string& spec, std::optional<Bytes> capacity, Device& device) {
    const std::size_t colon = spec.find(':');
    ReferenceParameters parameters{{}, capacity};
    if (colon != std::string::npos)
        for (const std::string& part : split(spec.substr(colon + 1), ',')) {
            const std::size_t equals = part.find('=');
            parameters.given[part.substr(0, equals)] = part.substr(equals + 1);
        }
    for (ReferenceMaker* make :
        {&reference_arena_policy, &reference_buddy_policy, &reference_rmm_policy, &reference_cupy_policy,
            &reference_framework_policy, &reference_stitching_policy, &reference_torch_async_policy, &reference_async_policy})
        if (auto made = make(spec.substr(0, colon), parameters, device)) return made;
    return nullptr;
}

}  // namespace fragsim::test
