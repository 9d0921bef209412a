#include "lib/core/closest.hpp"

#include "tests/support/catch.hpp"

using fragsim::closest;

TEST_CASE("the closest name is the one with the fewest letters changed", "[unit][closest]") {
    const std::vector<std::string_view> names{"caching", "split-capped", "expandable"};
    CHECK(closest("cachin", names) == "caching");
    CHECK(closest("cahcing", names) == "caching");
    CHECK(closest("split_caped", names) == "split-capped");
    CHECK(closest("caching", names) == "caching");
}

TEST_CASE("nothing is suggested when no name is near", "[unit][closest]") {
    CHECK(closest("buddy", {"caching", "split-capped"}).empty());
    CHECK(closest("anything", {}).empty());
    CHECK(closest("", {"caching"}).empty());
}
