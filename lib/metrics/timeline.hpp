// The course of a replay as CSV, one line an op.
#pragma once

#include <functional>
#include <string_view>

#include "lib/replay/replay.hpp"

namespace fragsim {

class Timeline final : public ReplayObserver {
public:
    using Sink = std::function<void(std::string_view text)>;

    // Writes the header at once, then every `every`-th op (from op 0 on) to `sink`.
    Timeline(const Trace& trace, const Policy& policy, std::uint32_t every, Sink sink);

    void observe(const Step& step) override;

private:
    const Trace& trace_;
    const Policy& policy_;
    std::uint32_t every_;
    Sink sink_;
};

}  // namespace fragsim
