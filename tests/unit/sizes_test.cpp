#include "lib/core/sizes.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/refusal.hpp"

using namespace fragsim;
using test::refusal;

TEST_CASE("a size is bytes or a number with a unit", "[unit][sizes]") {
    const auto [text, bytes] = GENERATE(table<const char*, Bytes>({{"0", 0}, {"1048576", kMiB}, {"512B", 512},
        {"1KiB", kKiB}, {"1.5GiB", kGiB + kGiB / 2}, {"2TiB", 2 * 1024 * kGiB}, {"1KB", 1000}, {"2MB", 2'000'000},
        {"10GB", 10'000'000'000}, {"1TB", 1'000'000'000'000}, {"3mib", 3 * kMiB}, {"3MIB", 3 * kMiB}}));
    CAPTURE(text);
    CHECK(parse_size(text) == bytes);
}

TEST_CASE("a decimal size is rounded down to whole bytes", "[unit][sizes]") {
    CHECK(parse_size("9.79GiB") == 10'511'932'456);  // 10511932456.96
    CHECK(parse_size("0.5B") == 0);
}

TEST_CASE("a bare K, M, G or T is refused as ambiguous", "[unit][sizes]") {
    const char* text = GENERATE("80G", "80g", "1.5T", "512K", "3M");
    const auto refused = refusal([&] { parse_size(text); });
    CHECK(refused.code == ErrorCode::usage);
    CHECK(refused.says(text));
    CHECK(refused.hints("ambiguous"));
    CHECK(refused.hints("GiB"));
}

TEST_CASE("what is not a size is refused with the forms there are", "[unit][sizes]") {
    const char* text =
        GENERATE("", "GiB", "-1GiB", "-1", "1 GiB", "1GiBs", "1.2.3GiB", "nan", "inf", "0x10", "1,5GiB", "80%");
    CAPTURE(text);
    const auto refused = refusal([&] { parse_size(text); });
    CHECK(refused.code == ErrorCode::usage);
    CHECK_FALSE(refused.hint.empty());
}

TEST_CASE("sizes too large for the arithmetic are refused", "[unit][sizes]") {
    CHECK(parse_size("1000000TiB") == 1'000'000 * 1024 * kGiB);
    CHECK(refusal([] { parse_size("4194304TiB"); }).code == ErrorCode::usage);  // 4 EiB
    CHECK(refusal([] { parse_size("1e300"); }).code == ErrorCode::usage);
}

TEST_CASE("a size is printed with three digits and a binary unit", "[unit][sizes]") {
    const auto [bytes, text] =
        GENERATE(table<Bytes, const char*>({{0, "0 B"}, {512, "512 B"}, {1023, "1023 B"}, {kKiB, "1.00 KiB"},
            {kKiB + 512, "1.50 KiB"}, {20 * kMiB, "20.0 MiB"}, {1000 * kMiB, "1000 MiB"}, {1023 * kMiB, "1023 MiB"},
            {kGiB, "1.00 GiB"}, {kGiB - 1, "1.00 GiB"}, {100 * kGiB, "100 GiB"}, {-2 * kMiB, "-2.00 MiB"}}));
    CHECK(format_size(bytes) == text);
}

TEST_CASE("what a size prints as can be read again", "[unit][sizes]") {
    for (Bytes bytes = 1; bytes < Bytes{1} << 55; bytes = bytes * 3 + 1) {
        std::string text = format_size(bytes);
        text.erase(text.find(' '), 1);
        if (text.ends_with("PiB")) break;  // sizes are read up to TiB
        CHECK(static_cast<double>(parse_size(text)) == Approx(static_cast<double>(bytes)).epsilon(0.006));
    }
}
