// The course of a replay as columns: the policy's state after every op, for what draws it.
#pragma once

#include <vector>

#include "lib/replay/replay.hpp"

namespace fragsim {

// Equal in length. An op that did not reach the policy, such as the free of an allocation that failed, left the state
// as it was; a replay that stopped early has fewer entries than its trace has ops.
struct Series {
    std::vector<Bytes> requested, allocated, active, reserved, largest_free;  // by op
    std::vector<std::uint32_t> retries;  // ops during which the policy flushed its cache and tried again

    std::size_t size() const { return reserved.size(); }
};

class SeriesRecorder final : public ReplayObserver {
public:
    // Both must outlive this.
    SeriesRecorder(const Trace& trace, const Policy& policy);

    void observe(const Step& step) override;

    // After the last step; `ops`: how many were replayed, the skipped ones included.
    Series take(std::uint32_t ops);

private:
    struct Row {
        Bytes requested, allocated, active, reserved, largest_free;
    };
    Row now() const;
    void fill_up_to(std::uint32_t op);  // with the state after the last step

    const Policy& policy_;
    std::int64_t retries_seen_;
    Row last_;
    Series series_;
};

}  // namespace fragsim
