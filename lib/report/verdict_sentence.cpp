#include <fmt/format.h>

#include "lib/core/sizes.hpp"
#include "lib/report/explanation.hpp"
#include "lib/report/format.hpp"

namespace fragsim {
namespace {

std::string cause(const Moment& moment) {
    const Oom& oom = moment.shortage.oom;
    const Waste& waste = moment.shortage.waste;
    const std::string hole = moment.largest_ranges.empty() ? "0 B" : format_size(moment.largest_ranges.front());
    const Bytes here = waste.pinned + waste.releasable;
    switch (moment.verdict) {
        case Verdict::capacity:
            return fmt::format(
                "capacity. {} are live; with the request that is more than there is, so no setting helps",
                format_size(oom.live_requested));
        case Verdict::limit:
            return "a memory limit of the process. The device had room; raise "
                   "torch.cuda.set_per_process_memory_fraction";
        case Verdict::rounding:
            return fmt::format("rounding. What is live would fit, but takes {} more than was asked for",
                format_size(waste.rounding + waste.unsplit));
        case Verdict::fragmentation:
            return fmt::format("fragmentation. {} were free, in pieces of at most {}", format_size(here), hole);
        case Verdict::pending_frees:
            return fmt::format("pending frees. {} wait for work of other streams", format_size(waste.pending));
        case Verdict::other_streams:
            return fmt::format("other streams. {} are free, but kept for other streams; {} on this one",
                format_size(waste.other_streams), format_size(here));
        case Verdict::private_pools:
            return fmt::format("private pools. {} are free, but kept for CUDA graphs or MemPools; {} outside them",
                format_size(waste.private_pools), format_size(here));
        case Verdict::unreleased:
            return fmt::format(
                "cached memory. {} are free in whole segments that were not given back", format_size(oom.releasable));
        case Verdict::outside:
            return fmt::format(
                "outside this allocator. The device had {} free with {} reserved here: something else "
                "holds the rest of the card",
                format_size(*moment.shortage.device_free), format_size(oom.reserved));
        case Verdict::policy_limit: return "a limit of the policy. The device had room";
    }
    return "";
}

}  // namespace

std::string verdict_sentence(const Moment& moment) {
    const Oom& oom = moment.shortage.oom;
    if (moment.kind == Moment::Kind::peak) {
        const Waste& waste = moment.shortage.waste;
        return fmt::format("no out of memory. At the peak, op {}, {} were reserved for {}: {} was good for nothing.",
            format_count(moment.op), format_size(waste.reserved()), format_size(waste.requested),
            format_ratio(
                static_cast<double>(waste.waste()) / static_cast<double>(std::max<Bytes>(1, waste.reserved()))));
    }
    return fmt::format("{} (op {}, {} asked for{}).", cause(moment), format_count(moment.op),
        format_size(oom.requested), moment.kind == Moment::Kind::recorded_oom ? ", as recorded" : "");
}

}  // namespace fragsim
