#include "lib/study/verdict.hpp"

#include <algorithm>

#include "lib/policy/torch_segments.hpp"

namespace fragsim {

const char* name(Verdict verdict) {
    switch (verdict) {
        case Verdict::capacity: return "capacity";
        case Verdict::limit: return "limit";
        case Verdict::rounding: return "rounding";
        case Verdict::fragmentation: return "fragmentation";
        case Verdict::pending_frees: return "pending_frees";
        case Verdict::other_size_class: return "other_size_class";
        case Verdict::other_streams: return "other_streams";
        case Verdict::private_pools: return "private_pools";
        case Verdict::unreleased: return "unreleased";
        case Verdict::rejected: return "rejected";
        case Verdict::served: return "served";
        case Verdict::policy_limit: return "policy_limit";
    }
    return "";
}

namespace {

// Who holds what is free, when it would be enough together.
Verdict holder_of_free_memory(const Oom& oom, const Waste& waste) {
    const Bytes missing = oom.rounded - std::max<Bytes>(0, oom.device_free) - waste.pinned - waste.releasable;
    if (missing <= 0) return Verdict::fragmentation;
    const Bytes most = std::max({waste.other_size_class, waste.other_streams, waste.private_pools, waste.pending});
    if (most == 0) return Verdict::fragmentation;
    if (most == waste.other_size_class) return Verdict::other_size_class;
    if (most == waste.other_streams) return Verdict::other_streams;
    return most == waste.private_pools ? Verdict::private_pools : Verdict::pending_frees;
}

}  // namespace

Verdict judge(const Shortage& shortage) {
    const Oom& oom = shortage.oom;
    const Bytes segment = pytorch::torch_segment_size(oom.rounded);
    // Room on the device that was refused shows a limit. A device that was full shows nothing about a larger one.
    if (shortage.replay_serves) return shortage.device_free.value_or(0) >= segment ? Verdict::limit : Verdict::served;
    switch (oom.cause) {
        case OomCause::capacity: return shortage.process_limit ? Verdict::limit : Verdict::capacity;
        case OomCause::internal: return Verdict::rounding;
        case OomCause::unreleased:
            return shortage.waste.private_pools > 0 ? Verdict::private_pools : Verdict::unreleased;
        case OomCause::stream_pending: return Verdict::pending_frees;
        case OomCause::other_size_class: return Verdict::other_size_class;
        case OomCause::rejected: return Verdict::rejected;
        case OomCause::policy_limit:
            // Less than a segment's room counts as none.
            return oom.device_free >= 0 && oom.device_free < segment ? holder_of_free_memory(oom, shortage.waste)
                                                                     : Verdict::policy_limit;
        case OomCause::remappable:
        case OomCause::compaction:
        case OomCause::other: return holder_of_free_memory(oom, shortage.waste);
    }
    return Verdict::fragmentation;
}

}  // namespace fragsim
