// Rounding and segment sizes: spec/pytorch-caching-allocator.md, sections 3 and 4.3, examples 1 to 7, 24 and 25.
#include "policies/pytorch/native_config.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::pytorch;
using test::bytes_of;

namespace {

struct Rounded {
    const char *settings, *requested, *block, *segment;
};

NativeConfig read(const char* settings) { return parse_alloc_conf(settings, {}).config; }

}  // namespace

TEST_CASE("a request is rounded to its block and gets a segment of the right size", "[unit][rounding]") {
    const Rounded row = GENERATE(values<Rounded>({
        {"", "1", "512", "2M"},
        {"", "511", "512", "2M"},
        {"", "512", "512", "2M"},
        {"", "513", "1024", "2M"},
        {"", "1000", "1024", "2M"},
        {"", "1M", "1M", "2M"},
        {"", "1M-1", "1M", "2M"},
        {"", "1M+1", "1049088", "20M"},
        {"", "10M-1", "10M", "10M"},
        {"", "10M-512", "10M-512", "20M"},
        {"", "10M-513", "10M-512", "20M"},
        {"", "10M", "10M", "10M"},
        {"", "10M+1", "10486272", "12M"},
        {"", "20M+1", "20M+512", "22M"},
        {"", "12M", "12M", "12M"},
        {"roundup_power2_divisions:4", "1200", "1536", "2M"},
        {"roundup_power2_divisions:4", "2048", "2048", "2M"},
        {"roundup_power2_divisions:4", "2049", "2560", "2M"},
        {"roundup_power2_divisions:4", "921600", "1M", "2M"},
        {"roundup_power2_divisions:4", "1200000", "1310720", "20M"},
        {"roundup_power2_divisions:4", "21000000", "24M", "24M"},
        {"roundup_power2_divisions:4", "16M", "16M", "16M"},
        {"roundup_power2_divisions:1", "1000001", "1000448", "2M"},
        {"roundup_power2_divisions:[64:1,128:2]", "65M", "65M", "66M"},
        {"roundup_power2_divisions:[64:1,128:2]", "129M", "192M", "192M"},
        {"roundup_power2_divisions:[64:1,128:2]", "257M", "257M", "258M"},
        {"large_segment_size_mb:12", "5M", "5M", "12M"},
        {"large_segment_size_mb:12", "1M", "1M", "2M"},
        {"large_segment_size_mb:15", "2M", "2M", "15M"},
        {"large_segment_size_mb:12", "10M", "10M", "10M"},
    }));
    CAPTURE(row.settings, row.requested);
    const NativeConfig config = read(row.settings);
    const Bytes block = config.round_size(bytes_of(row.requested));
    CHECK(block == bytes_of(row.block));
    CHECK(config.segment_size(block) == bytes_of(row.segment));
}

TEST_CASE("equal sizes are taken by address up to 2.12 and by the segment's age from 2.13", "[unit][rounding]") {
    CHECK_FALSE(parse_alloc_conf("", {2, 12}).config.serial_tie_break());
    CHECK(parse_alloc_conf("", {2, 13}).config.serial_tie_break());
}
