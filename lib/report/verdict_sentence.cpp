#include <fmt/format.h>

#include "lib/core/sizes.hpp"
#include "lib/report/explanation.hpp"
#include "lib/report/format.hpp"

namespace fragsim {
namespace {

const char* title(Verdict verdict) {
    switch (verdict) {
        case Verdict::capacity: return "capacity";
        case Verdict::limit: return "a memory limit of the process";
        case Verdict::rounding: return "rounding";
        case Verdict::fragmentation: return "fragmentation";
        case Verdict::pending_frees: return "pending frees";
        case Verdict::other_streams: return "memory kept for other streams";
        case Verdict::private_pools: return "memory kept for private pools";
        case Verdict::unreleased: return "cached memory not given back";
        case Verdict::outside: return "outside this allocator";
        case Verdict::policy_limit: return "a limit of the policy";
    }
    return "";
}

std::string evidence(const Moment& moment) {
    const Oom& oom = moment.shortage.oom;
    const Waste& waste = moment.shortage.waste;
    const std::string hole = moment.largest_ranges.empty() ? "0 B" : format_size(moment.largest_ranges.front());
    const Bytes here = waste.pinned + waste.releasable;
    switch (moment.verdict) {
        case Verdict::capacity:
            return fmt::format("{} are live; with the request that is more than there is, so no setting helps",
                format_size(oom.live_requested));
        case Verdict::limit: return "the device had room; raise torch.cuda.set_per_process_memory_fraction";
        case Verdict::rounding:
            return fmt::format("what is live would fit, but takes {} more than was asked for",
                format_size(waste.rounding + waste.unsplit));
        case Verdict::fragmentation:
            return fmt::format("{} were free, in pieces of at most {}", format_size(here), hole);
        case Verdict::pending_frees:
            return fmt::format("{} wait for work of other streams", format_size(waste.pending));
        case Verdict::other_streams:
            return fmt::format("{} are free, but kept for other streams; {} on this one",
                format_size(waste.other_streams), format_size(here));
        case Verdict::private_pools:
            return fmt::format("{} are free, but kept for CUDA graphs or MemPools; {} outside them",
                format_size(waste.private_pools), format_size(here));
        case Verdict::unreleased:
            return fmt::format("{} are free in whole segments that were not given back", format_size(oom.releasable));
        case Verdict::outside:
            return fmt::format(
                "the device had {} free with {} reserved here, less than the whole segments that were "
                "needed: something else holds the rest of the card",
                format_size(*moment.shortage.device_free), format_size(oom.reserved));
        case Verdict::policy_limit: return "the device had room";
    }
    return "";
}

}  // namespace

std::string verdict_sentence(const Moment& moment) {
    const Oom& oom = moment.shortage.oom;
    if (moment.kind == Moment::Kind::peak) {
        const Waste& waste = moment.shortage.waste;
        const Bytes back = waste.releasable, lost = waste.waste() - back;
        return fmt::format(
            "no out of memory. Most was reserved at op {}, {}: {} in use, {} free that could be given "
            "back, {} good for nothing ({}).",
            format_count(moment.op), format_size(waste.reserved()), format_size(waste.requested), format_size(back),
            format_size(lost),
            format_ratio(static_cast<double>(lost) / static_cast<double>(std::max<Bytes>(1, waste.reserved()))));
    }
    return fmt::format("{}. {} asked for at op {}{}; {}.", title(moment.verdict), format_size(oom.requested),
        format_count(moment.op), moment.kind == Moment::Kind::recorded_oom ? ", as recorded" : "", evidence(moment));
}

}  // namespace fragsim
