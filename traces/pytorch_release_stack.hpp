// What the call stack of a released segment says about who released it.
//
// A release carries the stack of the call that made it, where stacks are recorded for all calls. Where they are
// recorded for allocations only, it carries that of the call that once got the segment instead, which says nothing
// (c10/cuda/CUDACachingAllocator.cpp, release_block and emptyCache, 2.11).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "traces/pytorch_records.hpp"

namespace fragsim {

class ReleaseStacks {
public:
    explicit ReleaseStacks(const SnapshotRecords& records) : records_(records) {}

    // A segment was obtained; entries come in order.
    void obtained(const EntryRecord& entry) {
        if (entry.stack != kNoStack || !own_.empty()) own_[entry.address] = entry.stack;
    }

    // C++: ...::emptyCache. Python: empty_cache of torch's memory.py, which calls C++ directly.
    bool names_empty_cache(const EntryRecord& release) { return named(release.stack) == Named::empty_cache; }

    enum Told { nothing, malloc, other_call };
    // Of a release that does not name empty_cache; `request` is the stack of the request behind it, or kNoStack.
    Told tells(const EntryRecord& release, std::uint32_t request) {
        if (release.stack == kNoStack) return nothing;
        const auto own = own_.find(release.address);
        if (own != own_.end() && own->second == release.stack) return nothing;
        if (release.stack == request || named(release.stack) == Named::malloc) return malloc;
        // Pages need not be released as they were mapped, and a segment may be older than the history.
        return own != own_.end() && own->second != kNoStack && request != kNoStack ? other_call : nothing;
    }

private:
    enum class Named : std::uint8_t { unread, nobody, malloc, empty_cache };

    Named named(std::uint32_t stack);
    Named read(std::uint32_t stack) const;

    const SnapshotRecords& records_;
    std::vector<Named> named_;                        // by number of the stack
    std::unordered_map<Address, std::uint32_t> own_;  // stacks that segments were obtained with
};

}  // namespace fragsim
