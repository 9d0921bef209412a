// The flat ordered set against std::map.
#include "lib/core/ordered_blocks.hpp"

#include <map>
#include <random>

#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

using Key = OrderedBlocks::Key;
using Model = std::map<Key, OrderedBlocks::Block>;

void check_same(const OrderedBlocks& blocks, const Model& model) {
    REQUIRE(blocks.empty() == model.empty());
    REQUIRE(blocks.largest() == (model.empty() ? 0 : model.rbegin()->first.size));
    auto position = blocks.begin();
    for (const auto& [key, block] : model) {
        REQUIRE_FALSE(position == blocks.end());
        REQUIRE(blocks.block(position) == block);
        REQUIRE(blocks.size(position) == key.size);
        position = blocks.next(position);
    }
    REQUIRE(position == blocks.end());
    if (!model.empty()) REQUIRE(blocks.block(blocks.last()) == model.rbegin()->second);
}

void check_same_bound(const OrderedBlocks& blocks, const Model& model, Key wanted) {
    const auto expected = model.lower_bound(wanted);
    const auto found = blocks.lower_bound(wanted);
    if (expected == model.end())
        REQUIRE(found == blocks.end());
    else
        REQUIRE(blocks.block(found) == expected->second);
}

}  // namespace

TEST_CASE("an empty set of blocks has nothing to offer", "[unit][ordered-blocks]") {
    const OrderedBlocks blocks;
    CHECK(blocks.empty());
    CHECK(blocks.begin() == blocks.end());
    CHECK(blocks.lower_bound(Bytes{512}) == blocks.end());
    CHECK(blocks.largest() == 0);
}

TEST_CASE("best fit finds the smallest block that is large enough, ties in their order", "[unit][ordered-blocks]") {
    OrderedBlocks blocks;
    blocks.insert({2048, 7}, 1);
    blocks.insert({1024, 9}, 2);
    blocks.insert({2048, 3}, 3);
    CHECK(blocks.block(blocks.lower_bound(Bytes{512})) == 2);
    CHECK(blocks.block(blocks.lower_bound(Bytes{1025})) == 3);
    CHECK(blocks.lower_bound(Bytes{2049}) == blocks.end());
}

TEST_CASE("random inserts and erases leave what a map would hold", "[unit][ordered-blocks]") {
    // Few sizes make many ties; rising, then falling, then even odds fill and empty it.
    for (const unsigned sizes : {3u, 40u, 1'000'000u}) {
        std::mt19937_64 random(sizes);
        OrderedBlocks blocks;
        Model model;
        for (std::uint32_t step = 0; step < 20'000; ++step) {
            const unsigned odds = step < 8'000 ? 85 : step < 14'000 ? 15 : 50;  // of an insert, in percent
            if (model.empty() || random() % 100 < odds) {
                const Key key{static_cast<Bytes>(1 + random() % sizes) * 512, random() % 1'000'000};
                if (model.contains(key)) continue;
                model[key] = step;
                blocks.insert(key, step);
            } else {
                auto victim = model.lower_bound(Key{static_cast<Bytes>(random() % sizes) * 512, random() % 1'000'000});
                if (victim == model.end()) victim = model.begin();
                if (step % 2)
                    blocks.erase(victim->first);
                else
                    blocks.erase(blocks.lower_bound(victim->first));
                model.erase(victim);
            }
            check_same_bound(
                blocks, model, Key{static_cast<Bytes>(random() % (sizes + 2)) * 512, random() % 1'000'000});
            if (step % 500 == 0) check_same(blocks, model);
        }
        check_same(blocks, model);
        while (!model.empty()) {
            blocks.erase(blocks.begin());
            model.erase(model.begin());
        }
        check_same(blocks, model);
    }
}
