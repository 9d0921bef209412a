// What the text of an axis stands for, and how axes and policies make a grid.
#include "lib/study/sweep_axes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/refusal.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;
using Texts = std::vector<std::string>;

Texts values(const std::string& text) { return parse_sweep_axis("p.k=" + text).values; }
std::string refused(const std::string& text) {
    return refusal([&] { parse_sweep_axis(text); }).message;
}
bool refuses(const std::string& text, const std::string& message) {
    return refused(text).find(message) != std::string::npos;
}

}  // namespace

TEST_CASE("an axis takes a value, a list, ranges, and any mix of them", "[unit][sweep]") {
    CHECK(values("64") == Texts{"64"});
    CHECK(values("[64]") == Texts{"64"});
    CHECK(values("[best,first]") == Texts{"best", "first"});
    CHECK(values("[3:6]") == Texts{"3", "4", "5", "6"});
    CHECK(values("[20:50:10]") == Texts{"20", "30", "40", "50"});
    CHECK(values("[20:49:10]") == Texts{"20", "30", "40"});
    CHECK(values("[32:512:*2]") == Texts{"32", "64", "128", "256", "512"});
    CHECK(values("[1:100:*10]") == Texts{"1", "10", "100"});
    CHECK(values("[7:7]") == Texts{"7"});
    CHECK(values("[1,10:30:10,99]") == Texts{"1", "10", "20", "30", "99"});
}

TEST_CASE("decimal ranges are exact", "[unit][sweep]") {
    CHECK(values("[0.1:0.7:0.2]") == Texts{"0.1", "0.3", "0.5", "0.7"});
    CHECK(values("[0.5:1:0.25]") == Texts{"0.5", "0.75", "1"});
    CHECK(values("[0.3:0.9:0.1]") == Texts{"0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"});
    CHECK(values("[0.5:4:*2]") == Texts{"0.5", "1", "2", "4"});
}

TEST_CASE("ranges of sizes are in bytes", "[unit][sweep]") {
    CHECK(values("[1KiB:3KiB:1KiB]") == Texts{"1024", "2048", "3072"});
    CHECK(values("[1MiB:4MiB:*2]") == Texts{"1048576", "2097152", "4194304"});
    CHECK(parse_sweep_axis("capacity=[6GiB,none,1GiB:2GiB:512MiB]").values ==
          Texts{"6GiB", "none", "1073741824", "1610612736", "2147483648"});
    CHECK(parse_sweep_axis("capacity=6GiB").is_limit());
}

TEST_CASE("commas and colons inside inner brackets belong to a value", "[unit][sweep]") {
    CHECK(values("[4,[256:1,512:2,>:4],[8:2]]") == Texts{"4", "[256:1,512:2,>:4]", "[8:2]"});
    CHECK(values("[[256:1,512:2]]") == Texts{"[256:1,512:2]"});
}

TEST_CASE("an axis that means nothing is refused and says what is possible", "[unit][sweep]") {
    CHECK(refuses("p.k=[9:3]", "range '9:3' is empty"));
    CHECK(refuses("p.k=[3:9:0]", "needs a step above 0"));
    CHECK(refuses("p.k=[3:9:*1]", "factor of 2 or more"));
    CHECK(refuses("p.k=[0:9:*2]", "never leaves 0"));
    CHECK(refuses("p.k=[0.1:0.9]", "needs a step"));
    CHECK(refuses("p.k=[1GiB:2GiB]", "needs a step"));
    CHECK(refuses("p.k=[1GiB:2:1]", "mixes numbers and sizes"));
    CHECK(refuses("p.k=[a:b]", "is not made of numbers or sizes"));
    CHECK(refuses("p.k=[1:2:3:4]", "is not made of numbers or sizes"));
    CHECK(refuses("p.k=[1::2]", "is not made of numbers or sizes"));
    CHECK(refuses("p.k=[0:99999999]", "more than a million values"));
    CHECK(refuses("p.k=[]", "empty value"));
    CHECK(refuses("p.k=[1,]", "empty value"));
    CHECK(refuses("p.k=[1,2", "has no values"));
    CHECK(refuses("p.k=", "has no values"));
    CHECK(refuses("p.k", "has no values"));
    CHECK(refuses("p.k=[1,2,1]", "the value 1 twice"));
    CHECK(refuses("k=[1,2]", "names no policy"));
    CHECK(refuses(".k=1", "names no parameter"));
    CHECK(refuses("p.=1", "names no parameter"));
    CHECK(refuses("capacity=[6G]", "'6G' is not a size"));
    CHECK(refusal([] { parse_sweep_axis("capcity=1GiB"); }).hints("did you mean 'capacity'?"));
}

TEST_CASE("the largest sizes are no trap", "[unit][sweep]") {
    CHECK(values("[1TiB:2097152TiB:*1024]").size() == 3);
    CHECK(values("[2097152TiB:4000000TiB:4000000TiB]").size() == 1);
}

TEST_CASE("axes multiply, the first slowest, and add policies that only they name", "[unit][sweep]") {
    const auto axis = [](const char* text) { return parse_sweep_axis(text); };
    CHECK(expand_policies({}, {}).empty());
    CHECK(expand_policies({"a", "b:x=1"}, {axis("capacity=[1GiB,2GiB]")}) == Texts{"a", "b:x=1"});
    CHECK(expand_policies({"a"}, {axis("a.x=[1,2]"), axis("a.y=[3,4]")}) ==
          Texts{"a:x=1,y=3", "a:x=1,y=4", "a:x=2,y=3", "a:x=2,y=4"});
    CHECK(expand_policies({"b:z=1", "b:z=2", "a"}, {axis("b.x=[1,2]"), axis("c.y=5")}) ==
          Texts{"b:z=1,x=1", "b:z=1,x=2", "b:z=2,x=1", "b:z=2,x=2", "a", "c:y=5"});
    CHECK(refusal([&] { expand_policies({}, {axis("a.x=1"), axis("a.x=2")}); }).says("given twice"));
}

TEST_CASE("runs are counted without making them", "[unit][sweep]") {
    const auto axis = [](const char* text) { return parse_sweep_axis(text); };
    CHECK(count_runs(3, {}, {}) == 3);
    CHECK(count_runs(2, {"a", "b:x=1"}, {axis("capacity=[1GiB,2GiB]")}) == 8);
    CHECK(count_runs(1, {"b:z=1", "b:z=2", "a"}, {axis("b.x=[1,2]"), axis("c.y=5")}) == 6);
    const SweepAxis million = axis("a.x=[1:1000000]"), other = axis("a.y=[1:1000000]"), third = axis("a.z=[1:1000000]");
    CHECK(count_runs(2, {"a"}, {million, other}) == 2'000'000'000'000);
    CHECK(count_runs(1, {"a", "a:k=1"}, {million, other, third}) == kUncountable);
    CHECK(count_runs(5, {"a"}, {million, other, third, axis("capacity=[1GiB,2GiB]")}) == kUncountable);
    CHECK(refusal([&] { count_runs(1, {}, {million, million}); }).says("given twice"));
}
