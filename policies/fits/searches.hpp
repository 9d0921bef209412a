// The rules of the classic fits: which free block serves a request.
#pragma once

#include "lib/core/ordered_blocks.hpp"
#include "lib/policy/address_ordered_blocks.hpp"
#include "policies/fits/fit_policy.hpp"

namespace fragsim::fits {

// By size, then address.
class SizeOrder {
public:
    void insert(Address address, Bytes size, std::uint32_t block) { free_.insert({size, address}, block); }
    void erase(Address address, Bytes size, std::uint32_t) { free_.erase(OrderedBlocks::Key{size, address}); }
    void placed(Address) {}
    Bytes largest() const { return free_.largest(); }
    template <class Visit>
    void for_each_size(Visit visit) const {
        for (auto p = free_.begin(); p != OrderedBlocks::end(); p = free_.next(p)) visit(free_.size(p));
    }

protected:
    OrderedBlocks free_;
};

// The smallest that is large enough, the lowest among equals.
class BestFit : public SizeOrder {
public:
    Found find(Bytes size) const {
        const auto best = free_.lower_bound(size);
        return {best == OrderedBlocks::end() ? AddressOrderedBlocks::kNone : free_.block(best)};
    }
};

// The largest, the lowest among equals.
class WorstFit : public SizeOrder {
public:
    Found find(Bytes size) const {
        if (free_.largest() < size) return {AddressOrderedBlocks::kNone};
        return {free_.block(free_.lower_bound(free_.largest()))};
    }
};

// By address.
class AddressOrder {
public:
    void insert(Address address, Bytes size, std::uint32_t block) { free_.insert(address, size, block); }
    void erase(Address address, Bytes, std::uint32_t) { free_.erase(address); }
    void placed(Address) {}
    Bytes largest() const { return free_.largest(); }
    template <class Visit>
    void for_each_size(Visit visit) const {
        free_.for_each([&](const AddressOrderedBlocks::Entry& entry) { visit(entry.size); });
    }

protected:
    AddressOrderedBlocks free_;
};

// The lowest that is large enough.
class FirstFit : public AddressOrder {
public:
    Found find(Bytes size) const { return {free_.first_fit(size)}; }
};

// The lowest from where the last allocation ended, which may lie inside a block that has grown around it; then the
// lowest of all.
class NextFit : public AddressOrder {
public:
    void insert(Address address, Bytes size, std::uint32_t block) {
        AddressOrder::insert(address, size, block);
        if (address < rover_ && rover_ < address + static_cast<Address>(size)) around_ = {address, size, block};
    }
    void erase(Address address, Bytes size, std::uint32_t block) {
        AddressOrder::erase(address, size, block);
        if (around_.block == block) around_.block = AddressOrderedBlocks::kNone;
    }
    void placed(Address end) {
        rover_ = end;
        around_.block = AddressOrderedBlocks::kNone;  // what begins at the end is above the rover
    }
    Found find(Bytes size) const {
        if (around_.block != AddressOrderedBlocks::kNone) {
            const auto skip = static_cast<Bytes>(rover_ - around_.address);
            if (around_.size - skip >= size) return {around_.block, skip};
        }
        const std::uint32_t above = free_.first_fit(size, rover_);
        return {above != AddressOrderedBlocks::kNone ? above : free_.first_fit(size)};
    }

private:
    Address rover_ = 0;
    AddressOrderedBlocks::Entry around_{
        0, 0, AddressOrderedBlocks::kNone};  // the free block that the rover is inside of
};

// An entry of policies.def for a fit whose search has no parameters.
template <class Search>
PolicyInfo fit_policy(std::string_view name, std::string_view summary, std::string_view reference) {
    PolicyInfo info;
    info.name = name;
    info.summary = summary;
    info.reference = reference;
    info.parameters = fit_parameters();
    info.make = [name, known = info.parameters](const Parameters& given, const PolicyContext& context) {
        const FitConfig config = read_fit_config(ParameterReader(name, known, given), context);
        return std::make_unique<FitPolicy<Search>>(config, Search(), context.device);
    };
    return info;
}

}  // namespace fragsim::fits
