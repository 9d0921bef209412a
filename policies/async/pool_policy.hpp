// The driver's stream-ordered pool as a policy: the device has the pool (lib/device/stream_ordered_pool.hpp; on the
// host its measured rule, lib/device/async_pool_model.hpp), this hands requests on and keeps the account.
#pragma once

#include "lib/device/stream_ordered_pool.hpp"
#include "lib/policy/accounting_policy.hpp"
#include "lib/policy/parameters.hpp"

namespace fragsim::async {

// gpu_progress and the three reuse flags, which both policies have.
std::vector<PolicyParameter> reuse_parameters();
PoolProperties read_reuse(const ParameterReader& read);

class PoolPolicy : public AccountingPolicy {
public:
    PoolPolicy(const PoolProperties& properties, Device& device)
        : AccountingPolicy(device, StreamOrder::own), pool_(device.create_pool(properties)) {}

    void empty_cache() override;
    void synchronize(std::optional<StreamId> stream) override;

    Bytes largest_free() const override { return pool_->largest_free(); }
    void free_sizes(std::vector<Bytes>& out) const override { pool_->free_sizes(out); }
    MemoryPicture picture() const override;

protected:
    std::optional<Place> place(const Request& request) override;
    void give_back(const Place& place, StreamId stream) override;
    bool make_room() override { return false; }  // out of memory is what the driver says it is
    void trim();

private:
    // For what the pool got or gave back; `handed_out`: bytes that are not in the statistics yet.
    void account(Bytes handed_out = 0);

    std::unique_ptr<StreamOrderedPool> pool_;
};

}  // namespace fragsim::async
