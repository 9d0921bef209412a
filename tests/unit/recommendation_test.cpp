// What is recommended, with figures made by hand.
#include "lib/study/recommendation.hpp"
#include "lib/study/score.hpp"
#include "policies/pytorch/setting_traits.hpp"
#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

constexpr double kMs = 1e6;

// Like one that carries the run on a card of so many MiB.
Standing fits(const char* conf, Bytes card_mib, double stall_ns = 20 * kMs) {
    Standing setting;
    setting.traits = pytorch::setting_traits(conf, "2.11");
    setting.memory = setting.card = card_mib * kMiB;
    setting.reserved = card_mib * kMiB;
    setting.stall_ns = stall_ns;
    return setting;
}
Standing fails(const char* conf, std::optional<Bytes> card_mib, double stall_ns = 20 * kMs) {
    Standing setting = fits(conf, card_mib.value_or(0), stall_ns);
    setting.failing = 1;
    if (!card_mib) setting.memory = setting.card = std::nullopt;
    return setting;
}

// Index of what is recommended where the first is in force; 0: to keep it.
std::size_t best(const std::vector<Standing>& settings, const RankingRules& rules = {}) {
    return recommend(settings, 0, rules).best;
}

}  // namespace

TEST_CASE("a run that survives comes first, however much more it needs", "[unit][advice]") {
    CHECK(best({fails("", 9'000), fits("expandable_segments:True", 9'900), fails("max_split_size_mb:64", 8'000)}) == 1);
}

TEST_CASE("out of memory that turns into fits needs no gain", "[unit][advice]") {
    CHECK(best({fails("", 10'002), fits("max_split_size_mb:64", 10'000)}) == 1);
}

TEST_CASE("the smallest card is recommended", "[unit][advice]") {
    CHECK(best({fits("", 10'000), fits("max_split_size_mb:64", 9'000), fits("expandable_segments:True", 8'000)}) == 2);
}

TEST_CASE("less than 1 % is no gain", "[unit][advice]") {
    // 4 MiB of 62,386 at six times the stall; 16 MiB of 51,216 at 49 ms more.
    CHECK(best({fits("", 62'386, 25 * kMs), fits("max_split_size_mb:512", 62'382, 150 * kMs)}) == 0);
    CHECK(best({fits("", 51'216, 30 * kMs), fits("backend:cudaMallocAsync", 51'200, 79 * kMs)}) == 0);
    CHECK(best({fits("", 10'000), fits("expandable_segments:True", 9'902)}) == 0);
    CHECK(best({fits("", 10'000), fits("expandable_segments:True", 9'900)}) == 1);
}

TEST_CASE("figures that print the same are no gain", "[unit][advice]") {
    Standing now = fits("", 2), other = fits("expandable_segments:True", 2);
    now.memory = 2 * kMiB - 512;
    other.memory = kMiB + 512;
    CHECK(best({now, other}) == 0);
    CHECK(best({fits("", 2'000), fits("expandable_segments:True", 2'000)}) == 0);
}

TEST_CASE("among settings within 1 % the one with fewer entries is taken", "[unit][advice]") {
    CHECK(best({fits("", 12'000), fits("max_split_size_mb:93,max_non_split_rounding_mb:3426", 9'990),
              fits("max_split_size_mb:128", 10'080)}) == 2);
    // Twelve entries of a list are twelve.
    const char* const list = "roundup_power2_divisions:[1:8,2:8,4:8,8:8,16:2,32:8,64:8,128:8,256:2,512:8,1024:2,>:8]";
    CHECK(pytorch::setting_traits(list, "2.11").entries == 12);
    CHECK(best({fits("", 12'000), fits(list, 9'990), fits("expandable_segments:True,max_split_size_mb:64", 10'050)}) == 2);
    // Beyond 1 % the smaller card wins.
    CHECK(best({fits("", 12'000), fits(list, 9'000), fits("expandable_segments:True", 9'100)}) == 1);
}

TEST_CASE("among equals less stall is taken, then expandable segments, split sizes, another backend", "[unit][advice]") {
    const Standing now = fits("", 12'000), split = fits("max_split_size_mb:64", 10'000),
                   async = fits("backend:cudaMallocAsync", 9'990), expandable = fits("expandable_segments:True", 10'010);
    CHECK(best({now, async, split, expandable}) == 3);
    CHECK(best({now, async, split}) == 2);
    CHECK(best({now, split, expandable, async}) == 2);  // in any order
    CHECK(best({now, fits("expandable_segments:True", 10'000, 40 * kMs), fits("max_split_size_mb:64", 10'000, 20 * kMs)}) ==
          2);
    // 16 MiB less at 49 ms more.
    CHECK(best({fits("", 60'000, 90 * kMs), fits("backend:cudaMallocAsync", 51'200, 79 * kMs),
              fits("expandable_segments:True", 51'216, 30 * kMs)}) == 2);
}

TEST_CASE("equal means within 1 % of the best, not of the neighbour", "[unit][advice]") {
    // A chain of steps of 0.8 %: the last is not as good as the first, and the order does not matter.
    const Standing now = fits("", 12'000), first = fits("expandable_segments:True,max_split_size_mb:64", 10'000),
                   second = fits("max_split_size_mb:64,garbage_collection_threshold:0.8,per_process_memory_fraction:0.9", 10'080),
                   third = fits("max_split_size_mb:32", 10'160);
    CHECK(best({now, first, second, third}) == 1);
    CHECK(best({now, third, second, first}) == 3);
}

TEST_CASE("a small gain is not bought with much more stall", "[unit][advice]") {
    CHECK(best({fits("", 10'000, 20 * kMs), fits("max_split_size_mb:64", 9'900, 120 * kMs)}) == 0);  // 1 %, six times
    CHECK(best({fits("", 10'000, 20 * kMs), fits("max_split_size_mb:64", 9'900, 28 * kMs)}) == 1);
    CHECK(best({fits("", 10'000, 20 * kMs), fits("max_split_size_mb:64", 8'000, 120 * kMs)}) == 1);  // 20 %, six times
    // A stall too short to notice costs nothing.
    CHECK(best({fits("", 10'000, 0.1 * kMs), fits("max_split_size_mb:64", 9'900, 0.9 * kMs)}) == 1);
    CHECK(best({fits("", 10'000, 20 * kMs), fits("max_split_size_mb:64", 9'900, 120 * kMs)}, {false, 200 * kMs}) == 1);
    // Nor among settings that all turn out of memory into fits.
    CHECK(best({fails("", 11'000), fits("max_split_size_mb:64", 9'800, 500 * kMs),
              fits("expandable_segments:True", 9'950, 20 * kMs)}) == 2);
}

TEST_CASE("where nothing fits, what comes closest needs the smallest card", "[unit][advice]") {
    // Fewer requests fail under the last, and it needs more: it is not even looked at.
    CHECK(best({fails("", 366), fails("expandable_segments:True", 380), fails("roundup_power2_divisions:4", 408)}) == 0);
    CHECK(best({fails("", 143'848), fails("expandable_segments:True", 143'652),
              fails("expandable_segments:True,roundup_power2_divisions:8", 156'046)}) == 0);
    CHECK(best({fails("", 366), fails("expandable_segments:True", 340), fails("max_split_size_mb:64", 350)}) == 1);
    CHECK(best({fails("", std::nullopt), fails("expandable_segments:True", 340)}) == 1);
    CHECK(best({fails("", 366), fails("expandable_segments:True", std::nullopt)}) == 0);
    CHECK(best({fails("", std::nullopt), fails("expandable_segments:True", std::nullopt)}) == 0);
}

TEST_CASE("no line needs a larger card than what is in force", "[unit][advice]") {
    // Less is reserved without a limit, but the smallest card is larger.
    Standing now = fits("", 10'000), other = fits("roundup_power2_divisions:8", 8'000);
    now.card = 7'000 * kMiB;
    other.card = 7'002 * kMiB;
    CHECK(best({now, other}) == 0);
    other.card = 7'000 * kMiB;
    CHECK(best({now, other}) == 1);
    // What is in force fails here and fits on a smaller card, as can be: of those that fit, one that needs no more.
    CHECK(best({fails("", 9'950), fits("max_split_size_mb:64", 9'980), fits("expandable_segments:True,max_split_size_mb:64", 9'940)}) ==
          2);
    CHECK(best({fails("", 9'950), fits("max_split_size_mb:64", 9'980)}) == 1);
}

TEST_CASE("what PyTorch refuses is not recommended", "[unit][advice]") {
    Standing refused = fits("expandable_segments:True", 100);
    refused.refused = true;
    const Recommendation found = recommend({fits("max_split_size_mb:20", 10'000), refused}, 0);
    CHECK(found.best == 0);
    CHECK(found.simple == 0);
}

TEST_CASE("what needs a memory fraction is an extra at most", "[unit][advice]") {
    const Standing collects = fits("garbage_collection_threshold:0.8", 8'000);
    CHECK(collects.traits.needs_memory_fraction);
    const Recommendation alone = recommend({fits("", 10'000), collects}, 0);
    CHECK(alone.best == 0);
    CHECK(alone.simple == 0);
    CHECK(alone.extra == 1);
    const Recommendation beside = recommend({fits("", 10'000), collects, fits("expandable_segments:True", 8'050)}, 0);
    CHECK(beside.best == 2);
    CHECK_FALSE(beside.extra);  // no better than what needs none
    CHECK(recommend({fails("", 10'100), fits("garbage_collection_threshold:0.8", 9'990)}, 0).extra == 1);
    // A fraction in the same string is one.
    CHECK_FALSE(pytorch::setting_traits("garbage_collection_threshold:0.8,per_process_memory_fraction:0.9", "2.11")
                    .needs_memory_fraction);
}

TEST_CASE("the best simple setting has two entries at most, and may be the default", "[unit][advice]") {
    const char* const three = "max_split_size_mb:64,max_non_split_rounding_mb:40,roundup_power2_divisions:8";
    Recommendation found = recommend({fits("", 10'000), fits(three, 8'000), fits("expandable_segments:True", 9'000)}, 0);
    CHECK(found.best == 1);
    CHECK(found.simple == 2);
    found = recommend({fits(three, 10'000), fits("", 10'050), fits("expandable_segments:True", 10'000)}, 0);
    CHECK(found.best == 0);
    CHECK(found.simple == 1);
}

TEST_CASE("with stall first, memory is the price", "[unit][advice]") {
    const RankingRules rules{.stall_first = true, .small_stall_ns = kMs};
    CHECK(best({fits("", 10'000, 20 * kMs), fits("expandable_segments:True", 9'000, 30 * kMs),
                   fits("roundup_power2_divisions:4", 10'500, 10 * kMs)},
              rules) == 2);
    CHECK(best({fits("", 10'000, 20 * kMs), fits("roundup_power2_divisions:4", 9'000, 19.9 * kMs)}, rules) == 0);
    CHECK(best({fits("", 10'000, 20 * kMs), fails("roundup_power2_divisions:4", 9'000, 1 * kMs)}, rules) == 0);
}

TEST_CASE("a search does not take a setting whose start did not fit for one that reserves little", "[unit][advice]") {
    Score whole, missing;
    whole.failing = missing.failing = 1;
    whole.ooms = 8;
    whole.reserved = 142'382 * kMiB;
    missing.ooms = missing.left_out = 1;
    missing.reserved = 8'856 * kMiB;
    CHECK(better(whole, missing, {Goal::survive, Goal::reserved}));
    CHECK(pareto_front({{"", whole, {}}, {"roundup_power2_divisions:8", missing, {}}}).empty());
}
