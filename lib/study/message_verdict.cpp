#include "lib/study/message_verdict.hpp"

#include <algorithm>

namespace fragsim {
namespace {

ByteRange operator+(const ByteRange& a, const ByteRange& b) { return {a.low + b.low, a.high + b.high}; }
ByteRange operator-(const ByteRange& a, const ByteRange& b) { return {a.low - b.high, a.high - b.low}; }
ByteRange at_least_none(const ByteRange& a) { return {std::max<Bytes>(0, a.low), std::max<Bytes>(0, a.high)}; }
ByteRange smaller(const ByteRange& a, const ByteRange& b) { return {std::min(a.low, b.low), std::min(a.high, b.high)}; }

Proof not_less(const ByteRange& available, const ByteRange& needed) {
    if (available.low >= needed.high) return Proof::yes;
    return available.high < needed.low ? Proof::no : Proof::open;
}

using Term = MessageFinding::Term;

MessageFinding compare(MessageCause cause, std::vector<Term> terms, const ByteRange& needed) {
    ByteRange sum;
    for (const Term& term : terms) sum = term.sign > 0 ? sum + term.bytes : sum - term.bytes;
    sum = at_least_none(sum);
    const Proof proof = not_less(sum, needed);
    return {cause, std::move(terms), sum, needed, proof};
}

// Every figure that follows from those in the message.
struct Figures {
    explicit Figures(const OomMessage& message) : m(message) {
        if (m.requested) tensor = m.wording == OomWording::async_pool ? *m.requested : tensor_size(*m.requested);
        reserved = m.reserved;
        unallocated = m.unallocated;
        if (!unallocated && reserved && m.allocated) unallocated = at_least_none(*reserved - *m.allocated);
        if (!reserved && unallocated && m.allocated) reserved = *m.allocated + *unallocated;
        // The driver gives what is free on the card, and with a limit no more than what is left below it.
        if (m.allowed && reserved)
            below_limit = at_least_none(*m.allowed - *reserved);
        else if (m.allowed && m.allocated)
            below_limit = {0, at_least_none(*m.allowed - *m.allocated).high};
        if (m.free) obtainable = below_limit ? smaller(*m.free, *below_limit) : *m.free;
        split_outside();
    }

    // Served from the pool of small blocks, in segments of 2 MiB (spec/pytorch-caching-allocator.md, section 4.1). The
    // driver's pool has no such thing.
    bool small() const { return m.wording != OomWording::async_pool && tensor.high <= kMiB; }

    // What is on the card beside PyTorch's memory, as far as it could go away.
    void split_outside() {
        if (!m.total || !m.free || !reserved) return;
        const ByteRange context{kContextBytes, kContextBytes};
        if (!m.in_use) {
            const ByteRange all = at_least_none(*m.total - *m.free - *reserved);
            movable.push_back({"held outside PyTorch's allocator beyond a CUDA context's 1 GiB, by whom is not said",
                at_least_none(all - context)});
        } else {
            const ByteRange own = at_least_none(*m.in_use - *reserved);
            movable.push_back({"held by other processes", at_least_none(*m.total - *m.free - *m.in_use)});
            movable.push_back({"held by this process outside PyTorch's allocator beyond a CUDA context's 1 GiB",
                at_least_none(own - context)});
        }
        // What the driver keeps for itself and what rounding leaves over is nobody's to give back.
        std::erase_if(movable, [&](const Term& term) {
            return static_cast<double>(term.bytes.high) < kNearlyFull * static_cast<double>(m.total->low);
        });
    }

    const OomMessage& m;
    ByteRange tensor;
    std::optional<ByteRange> reserved, unallocated, below_limit, obtainable;
    std::vector<Term> movable;  // empty: nothing worth it, or not known
};

std::vector<Term> inside(const Figures& f) {
    std::vector<Term> terms;
    if (f.unallocated) terms.push_back({"reserved by PyTorch but unallocated", *f.unallocated});
    return terms;
}

Term from_driver(const Figures& f) {
    const bool limited = f.below_limit && f.obtainable && *f.obtainable == *f.below_limit;
    return {limited ? "left below the limit in force" : "free on the card", *f.obtainable};
}

// Two ways to see that the card is too small: all that could be free is less than what was asked for; what is live and
// what was asked for are more than the card. Rounding, or figures that lack, can hide one of them.
std::optional<MessageFinding> beyond_the_card(const Figures& f) {
    const OomMessage& m = f.m;
    std::optional<MessageFinding> finding;
    const auto holds_if = [](Proof proof) {
        return proof == Proof::yes ? Proof::no : proof == Proof::no ? Proof::yes : Proof::open;
    };
    if (m.total) {
        std::vector<Term> terms{{"the card", *m.total}};
        if (m.allocated) terms.push_back({"allocated by PyTorch", *m.allocated, -1});
        if (m.in_private_pools) terms.push_back({"of it free in private pools", *m.in_private_pools});
        finding = compare(MessageCause::capacity, std::move(terms), f.tensor);
        finding->proof = holds_if(finding->proof);
        if (finding->proof == Proof::yes) return finding;
    }
    if (m.free && f.unallocated) {
        std::vector<Term> terms = inside(f);
        terms.push_back({"free on the card", *m.free});
        if (m.in_private_pools) terms.push_back({"free in private pools", *m.in_private_pools});
        terms.insert(terms.end(), f.movable.begin(), f.movable.end());
        finding = compare(MessageCause::capacity, std::move(terms), f.tensor);
        finding->proof = holds_if(finding->proof);
    }
    return finding;
}

std::vector<MessageFinding> compare_all(const Figures& f) {
    const OomMessage& m = f.m;
    std::vector<MessageFinding> findings;
    // Of a small request's free memory nobody says which pool it lies in: that it would do in one piece does not
    // follow.
    if (f.unallocated && f.obtainable && !f.small()) {
        std::vector<Term> terms = inside(f);
        terms.push_back(from_driver(f));
        findings.push_back(compare(MessageCause::fragmentation, terms, f.tensor));
        if (m.in_private_pools) {
            terms.push_back({"free in private pools", *m.in_private_pools});
            findings.push_back(compare(MessageCause::private_pools, terms, f.tensor));
        }
    }
    if (m.allowed && m.free) {
        MessageFinding finding = compare(MessageCause::limit, {{"free on the card", *m.free}}, *m.requested);
        // That the card has room is half of it: the limit must also be what is in the way.
        const std::optional<ByteRange> held = f.reserved ? f.reserved : m.allocated;
        if (held && not_less(*m.allowed, *held + *m.requested) == Proof::yes) finding.proof = Proof::no;
        findings.push_back(std::move(finding));
    }
    if (f.unallocated && f.small()) findings.push_back(compare(MessageCause::other_size_class, inside(f), f.tensor));
    if (!f.movable.empty()) {
        std::vector<Term> terms = inside(f);
        terms.push_back({"free on the card", *m.free});
        terms.insert(terms.end(), f.movable.begin(), f.movable.end());
        MessageFinding finding = compare(MessageCause::outside, terms, f.tensor);
        // Free memory that was enough was in nobody's hands, and below a limit what others give back cannot be had.
        const bool enough_free = not_less(*m.free, *m.requested) == Proof::yes;
        const bool beyond_limit =
            m.allowed && m.allocated && not_less(*m.allowed - *m.allocated, f.tensor) == Proof::no;
        if (enough_free || beyond_limit) finding.proof = Proof::no;
        findings.push_back(std::move(finding));
    }
    if (std::optional<MessageFinding> finding = beyond_the_card(f)) findings.push_back(std::move(*finding));
    return findings;
}

std::vector<std::string> missing_figures(const Figures& f) {
    std::vector<std::string> missing;
    const auto need = [&](bool there, const char* what) {
        if (!there) missing.emplace_back(what);
    };
    need(f.m.total.has_value(), "the card's capacity");
    need(f.m.free.has_value(), "what is free on the card");
    need(f.m.allocated.has_value(), "what PyTorch has allocated");
    need(f.unallocated.has_value(), "what PyTorch has reserved but not allocated");
    return missing;
}

}  // namespace

ByteRange tensor_size(const ByteRange& segment) {
    if (segment.high < 2 * kMiB) return segment;  // of a version or setting with other segments
    if (segment.low <= 2 * kMiB && segment.high < 4 * kMiB) return {1, kMiB};
    if (segment.low <= 20 * kMiB && segment.high >= 20 * kMiB && segment.high < 22 * kMiB)
        return {kMiB + 1, segment.high};
    return {std::max<Bytes>(1, segment.low - 2 * kMiB + 1), segment.high};
}

MessageVerdict judge(const OomMessage& message) {
    MessageVerdict verdict;
    if (message.messages == 0) {
        const bool torch = message.origin == OomOrigin::torch || message.origin == OomOrigin::cuda;
        verdict.cause = torch ? MessageCause::no_figures : MessageCause::not_torch;
        return verdict;
    }
    const Figures figures(message);
    verdict.missing = missing_figures(figures);
    verdict.findings = compare_all(figures);
    const std::optional<ByteRange> ceiling = message.allowed ? message.allowed : message.total;
    if (figures.unallocated && figures.obtainable && ceiling)
        verdict.nearly_full = static_cast<double>(figures.unallocated->high + figures.obtainable->high) <
                              kNearlyFull * static_cast<double>(ceiling->low);
    verdict.free_sufficed = figures.obtainable && not_less(*figures.obtainable, *message.requested) == Proof::yes;
    // Free memory that was enough and was refused: whatever was in the way, it is not in these figures.
    if (verdict.free_sufficed) return verdict;
    for (const MessageFinding& finding : verdict.findings)
        if (finding.proof == Proof::yes) {
            verdict.cause = finding.cause;
            break;
        }
    return verdict;
}

const char* name(MessageCause cause) {
    switch (cause) {
        case MessageCause::fragmentation: return "fragmentation";
        case MessageCause::private_pools: return "private_pools";
        case MessageCause::limit: return "limit";
        case MessageCause::other_size_class: return "other_size_class";
        case MessageCause::outside: return "outside";
        case MessageCause::capacity: return "capacity";
        case MessageCause::undecided: return "undecided";
        case MessageCause::no_figures: return "no_figures";
        case MessageCause::not_torch: return "not_torch";
    }
    return "";
}

}  // namespace fragsim
