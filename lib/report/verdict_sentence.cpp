#include <fmt/format.h>

#include "lib/core/sizes.hpp"
#include "lib/policy/torch_segments.hpp"
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
        case Verdict::other_size_class: return "memory kept for blocks of other sizes";
        case Verdict::other_streams: return "memory kept for other streams";
        case Verdict::private_pools: return "memory kept for private pools";
        case Verdict::unreleased: return "cached memory not given back";
        case Verdict::rejected: return "a rejection by throw_on_cudamalloc_oom";
        case Verdict::served: return "served in this replay";
        case Verdict::policy_limit: return "a limit of the policy";
    }
    return "";
}

// PyTorch's two pools, which are the only size classes there are.
std::string size_class_evidence(const Moment& moment) {
    const Oom& oom = moment.shortage.oom;
    const bool small = oom.rounded <= pytorch::kSmallMax;
    return fmt::format(
        "{} are free in the pool of {} blocks; requests {} 1 MiB are served from the {} pool, which has {}",
        format_size(moment.shortage.waste.other_size_class), small ? "large" : "small", small ? "up to" : "above",
        small ? "small" : "large",
        oom.largest_free == 0 ? "nothing free" : "pieces of at most " + format_size(oom.largest_free));
}

// A replay that serves what the recorded run did not get has more memory, or other settings.
std::string served_evidence(const Moment& moment) {
    const Shortage& shortage = moment.shortage;
    std::string text = "the recorded run did not get it";
    if (shortage.device_free)
        text += fmt::format(", with {} reserved and {} free on its device", format_size(shortage.oom.reserved),
            format_size(*shortage.device_free));
    if (moment.needs) text += fmt::format("; the run needs {}", format_mib(*moment.needs));
    if (!shortage.device_free || shortage.oom.device_free <= *shortage.device_free) return text;
    return text + ". If the recorded card was as large as this one, something else held the rest of it";
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
        case Verdict::other_size_class: return size_class_evidence(moment);
        case Verdict::other_streams:
            return fmt::format("{} are free, but kept for other streams; {} on this one",
                format_size(waste.other_streams), format_size(here));
        case Verdict::private_pools:
            return fmt::format("{} are free, but kept for CUDA graphs or MemPools; {} outside them",
                format_size(waste.private_pools), format_size(here));
        case Verdict::unreleased:
            return fmt::format("{} are free in whole segments that were not given back", format_size(oom.releasable));
        case Verdict::rejected:
            return fmt::format("refused before {} of cached memory were given back", format_size(oom.releasable));
        case Verdict::served: return served_evidence(moment);
        case Verdict::policy_limit: return "the device had room";
    }
    return "";
}

}  // namespace

namespace {

std::string peak_sentence(const Moment& moment) {
    const Waste& waste = moment.shortage.waste;
    const Bytes back = waste.releasable, lost = waste.waste() - back;
    return fmt::format(
        "no out of memory. Most was reserved {}, {}: {} in use, {} free that could be given back, {} wasted ({}).",
        moment.at_start ? "at the start, before op 0" : "at op " + format_count(moment.op),
        format_size(waste.reserved()), format_size(waste.requested), format_size(back), format_size(lost),
        format_ratio(static_cast<double>(lost) / static_cast<double>(std::max<Bytes>(1, waste.reserved()))));
}

// What a library asks for, it may do without.
std::string workspace_sentence(const Workspace& workspace) {
    const std::string life = fmt::format("{} {}", format_count(workspace.ops), workspace.ops == 1 ? "op" : "ops");
    if (workspace.library.empty())
        return fmt::format(
            " The program may go on with less: this memory is freed after {}, as a library's workspace is.", life);
    return fmt::format(
        " The program may go on with less: this is workspace of {}, freed after {}.", workspace.library, life);
}

}  // namespace

std::string verdict_sentence(const Moment& moment) {
    if (moment.kind == Moment::Kind::peak) return peak_sentence(moment);
    const bool bounded = moment.shortage.oom.device_free >= 0;
    return fmt::format("{}. {} asked for at op {}{}; {}.{}",
        moment.verdict == Verdict::served && bounded ? "served at this capacity" : title(moment.verdict),
        format_size(moment.shortage.oom.requested), format_count(moment.op),
        moment.kind == Moment::Kind::recorded_oom ? ", as recorded" : "", evidence(moment),
        moment.workspace ? workspace_sentence(*moment.workspace) : "");
}

}  // namespace fragsim
