#include "lib/policy/address_ordered_blocks.hpp"

#include <map>
#include <random>

#include "tests/support/catch.hpp"

using namespace fragsim;

TEST_CASE("first fit finds what a search through a map finds", "[unit][blocks]") {
    std::mt19937 random(7);
    AddressOrderedBlocks blocks;
    std::map<Address, std::pair<Bytes, std::uint32_t>> plain;
    const auto first_fit = [&](Bytes size, Address from) {
        for (auto block = plain.lower_bound(from); block != plain.end(); ++block)
            if (block->second.first >= size) return block->second.second;
        return AddressOrderedBlocks::kNone;
    };
    for (std::uint32_t step = 0; step < 20'000; ++step) {
        const Address address = 512 * (random() % 4096);
        if (const auto there = plain.find(address); there != plain.end()) {
            blocks.erase(address);
            plain.erase(there);
        } else {
            const Bytes size = 1 + static_cast<Bytes>(random() % 1000);
            blocks.insert(address, size, step);
            plain[address] = {size, step};
        }
        const auto size = static_cast<Bytes>(random() % 1100);
        const Address from = random() % 3 == 0 ? 0 : 512 * (random() % 4096) + random() % 2;
        REQUIRE(blocks.first_fit(size, from) == first_fit(size, from));
        const auto above = plain.upper_bound(from);
        const auto* below = blocks.at_or_below(from);
        REQUIRE((below != nullptr) == (above != plain.begin()));
        if (below) REQUIRE(below->address == std::prev(above)->first);
        REQUIRE(blocks.empty() == plain.empty());
    }
    while (!plain.empty()) {
        blocks.erase(plain.begin()->first);
        plain.erase(plain.begin());
    }
    CHECK(blocks.empty());
    CHECK(blocks.largest() == 0);
}
