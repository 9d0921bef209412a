#include "lib/policy/parameters.hpp"

#include <limits>

#include "lib/core/error.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

const std::vector<PolicyParameter> kKnown{{"size_bytes", "bytes", "1MiB", "a size"},
    {"kind", "best|worst", "best", "a kind"}, {"part", "ratio", "0.5", "a part"}, {"lists", "count", "5", "lists"},
    {"lazy", "bool", "false", "lazy or not"}};

// What is said about a value that cannot be used.
std::string refusal(const std::string& name, const std::string& value) {
    const Parameters given{{name, value}};
    const ParameterReader read("demo", kKnown, given);
    try {
        read.power_of_two("size_bytes", 512);
        read.choice<int>("kind");
        read.ratio("part", 0, 1);
        read.count("lists", 1, 6);
        read.flag("lazy");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        return error.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("a parameter that is not given has its default", "[unit][parameters]") {
    const Parameters none;
    const ParameterReader read("demo", kKnown, none);
    CHECK(read.bytes("size_bytes") == kMiB);
    CHECK(read.choice<int>("kind") == 0);
    CHECK(read.ratio("part", 0, 1) == 0.5);
    CHECK(read.count("lists", 1, 6) == 5);
    CHECK_FALSE(read.flag("lazy"));
}

TEST_CASE("values are read as people write them", "[unit][parameters]") {
    const Parameters given{{"size_bytes", "2GiB"}, {"kind", "worst"}, {"part", "1"}, {"lists", "6"}, {"lazy", "True"}};
    const ParameterReader read("demo", kKnown, given);
    CHECK(read.power_of_two("size_bytes", 512) == 2 * kGiB);
    CHECK(read.choice<int>("kind") == 1);
    CHECK(read.ratio("part", 0, 1) == 1);
    CHECK(read.count("lists", 1, 6) == 6);
    CHECK(read.flag("lazy"));
}

TEST_CASE("a value that cannot be used is refused with its name", "[unit][parameters]") {
    CHECK(refusal("size_bytes", "80G").find("size_bytes") != std::string::npos);
    CHECK(refusal("size_bytes", "3MiB") == "policy demo: size_bytes=3MiB is not a power of two of at least 512 bytes");
    CHECK(refusal("kind", "wurst") == "policy demo: unknown kind 'wurst'");
    CHECK(refusal("part", "1.5") == "policy demo: part=1.5 is not a number from 0 to 1");
    CHECK(refusal("lists", "7") == "policy demo: lists=7 is not a number from 1 to 6");
    CHECK(refusal("lazy", "yes") == "policy demo: lazy=yes is not true or false");
}

TEST_CASE("a threshold that nothing exceeds can be written in every way that people do", "[unit][parameters]") {
    for (const char* text : {"max", "18446744073709551615", "9223372036854775807"}) {
        const Parameters given{{"size_bytes", text}};
        CHECK(ParameterReader("demo", kKnown, given).bytes_or_max("size_bytes") == std::numeric_limits<Bytes>::max());
    }
}
