// What the figures of an out-of-memory message prove, and what they leave open.
//
// Every cause is one comparison: what would be there without it, against what was asked for. As the figures are ranges,
// a comparison is true, false, or open. A message has no largest hole: that free memory lies in pieces follows only
// from there having been enough of it. The first cause below that is proved is the verdict; others that hold stay
// beside it.
#pragma once

#include <string>
#include <vector>

#include "lib/study/oom_message.hpp"

namespace fragsim {

enum class MessageCause {
    fragmentation,     // reserved but unallocated, with what the driver would still give, would have been enough
    private_pools,     // with what lies free in private pools it would have been
    limit,             // the card had room, the limit in force refused
    other_size_class,  // a small request, which what is unallocated for larger blocks cannot serve
    outside,           // with what other processes and other libraries hold it would have been
    capacity,          // live bytes and the request exceed the card
    undecided,         // none of these is proved
    no_figures,        // PyTorch's or the driver's, cut off or without figures
    not_torch,         // of another library, of host memory, or no such message at all
};
const char* name(MessageCause cause);  // "fragmentation", "private_pools", ...

enum class Proof { no, yes, open };

// One comparison, with what it is made of.
struct MessageFinding {
    struct Term {
        std::string what;
        ByteRange bytes;
        int sign = 1;  // -1: taken away
    };
    MessageCause cause;
    std::vector<Term> terms;
    ByteRange sum;  // of the terms, not below 0
    ByteRange needed;
    Proof proof;  // that the cause holds
};

struct MessageVerdict {
    MessageCause cause = MessageCause::undecided;
    std::vector<MessageFinding> findings;  // those that the figures allow to make, in the order above
    std::vector<std::string> missing;      // figures that the message lacks
    // What the card says is free would have been enough: the figures are from after the failure.
    bool free_sufficed = false;
    // All that is free, inside PyTorch's memory and obtainable, is below kNearlyFull of the card or of the limit: what
    // serves this request will not serve many more.
    bool nearly_full = false;
};

// Memory that a CUDA context and the libraries loaded into it take in a process, which no setting frees, ends here:
// 0.3 to 0.9 GiB are usual.
inline constexpr Bytes kContextBytes = Bytes{1} << 30;
inline constexpr double kNearlyFull = 0.02;

MessageVerdict judge(const OomMessage& message);

// The tensor's own size, of which the message has only the segment's: 1 MiB and less ask the driver for 2 MiB, up to
// 10 MiB for 20 MiB, more for the next multiple of 2 MiB (spec/pytorch-caching-allocator.md, section 6).
ByteRange tensor_size(const ByteRange& segment);

}  // namespace fragsim
