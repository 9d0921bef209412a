// Reference of the cudaMallocAsync pool, by spec/async-pool-rule.md and, where that leaves a case open,
// tests/gpu/results/async_pool/README.md.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tests/support/reference_policies.hpp"

namespace fragsim::test {

class ReferenceAsyncPool final : public ReferencePolicy {
public:
    struct Settings {
        Bytes threshold = 0;
        bool opportunistic = true, internal = true;
        Bytes max_size = 0;  // 0: no bound
        bool idle = true;    // the GPU has passed every free; false: none
    };
    ReferenceAsyncPool(const Settings& settings, Device& device);

    std::optional<Placement> allocate(int id, Bytes bytes, int stream) override;
    void free(int id) override;  // on the stream that allocated
    void free(int id, int stream);
    void synchronize(std::optional<int> stream) override;
    void trim(Bytes keep);
    void empty_cache() override;
    bool tries_again() const override { return false; }  // out of memory is what the driver says
    Bytes reserved() const override { return kChunk * static_cast<Bytes>(mapped_.size()); }

private:
    static constexpr Bytes kChunk = 32 * kMiB;
    struct Range {
        Bytes begin, end;
        int stamp, ticket;
        Bytes size() const { return end - begin; }
    };
    using Ranges = std::vector<Range>;

    bool passed(int stream, const Range& range) const;
    void meet(int stream);
    void insert(Ranges& list, Range range);
    template <class May>
    std::optional<Bytes> take(Ranges& list, Bytes n, May may);
    std::optional<Bytes> take_and_map(Bytes n);
    template <class Which, class After>
    void promote(int stream, Which which, After after_each);
    std::vector<Bytes> unmapped(Bytes begin, Bytes end) const;
    std::vector<Bytes> idle_chunks() const;

    Device& device_;
    const Settings settings_;
    const Bytes end_;  // of the address range
    Address base_ = 0;
    int clock_ = 0;
    Ranges ready_;
    std::map<int, Ranges> own_;
    std::map<int, int> ticket_;
    std::vector<int> streams_;  // in order of first use
    std::set<Bytes> mapped_;    // chunks
    struct Live {
        Bytes place, size;
        int stream;
    };
    std::map<int, Live> live_;
};

}  // namespace fragsim::test
