// Addresses of a history and what lives there now: a flat hash table from which nothing is taken out, because an
// address that was freed once must be told from one never seen.
#pragma once

#include <cstdint>

#include "lib/core/types.hpp"
#include "lib/trace/flat_array.hpp"

namespace fragsim {

enum class AddressState : std::uint32_t {
    unseen,
    live,
    pending,  // free requested, not completed
    freed,
    empty,  // an allocation of no bytes
};

struct AddressEntry {
    Address address = ~Address{0};  // of an unused slot
    BufferId buffer;
    AddressState state = AddressState::unseen;
};

class AddressTable {
public:
    AddressTable() { slots_.resize(1024, AddressEntry{}); }

    // The entry of `address` (never ~0), made if it is new. Valid until the next call.
    AddressEntry& operator[](Address address) {
        AddressEntry& entry = slots_[slot_of(address)];
        if (entry.address == address) [[likely]]
            return entry;
        if (2 * (used_ + 1) > slots_.size()) {
            grow();
            return (*this)[address];
        }
        ++used_;
        entry.address = address;
        return entry;
    }

    template <class Visit>
    void for_each(Visit&& visit) const {
        for (const AddressEntry& entry : slots_)
            if (entry.state != AddressState::unseen) visit(entry);
    }

private:
    std::size_t slot_of(Address address) const {
        const std::size_t mask = slots_.size() - 1;
        // Allocations are aligned to 512 bytes; the multiplication spreads the rest over the high bits.
        std::size_t slot = (address * 0x9e3779b97f4a7c15u) >> 32 & mask;
        while (slots_[slot].address != address && slots_[slot].address != ~Address{0}) slot = (slot + 1) & mask;
        return slot;
    }

    void grow() {
        FlatArray<AddressEntry> old = std::exchange(slots_, {});
        slots_.resize(4 * old.size(), AddressEntry{});
        for (const AddressEntry& entry : old)
            if (entry.address != ~Address{0}) slots_[slot_of(entry.address)] = entry;
    }

    FlatArray<AddressEntry> slots_;  // a power of two, at most half full
    std::size_t used_ = 0;
};

}  // namespace fragsim
