// The worked examples of spec/pytorch-caching-allocator.md, section 18, on expandable segments (26 to 34) and on
// private pools (35 to 38), by their numbers.
#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// Addresses count from the first reserved range, or else from the first segment.
Address origin(const LoggedDevice& device) {
    for (const DriverCall& call : device.calls())
        if (call.kind == DriverCallKind::reserve) return call.address;
    return device.calls().empty() ? 0 : device.calls().front().address;
}

// "map +0 20M, unmap +40M 20M, malloc 30M, free 30M"; reservations are left out.
std::string calls(const Playback& play) {
    std::string out;
    for (const DriverCall& call : play.device.calls()) {
        if (call.kind == DriverCallKind::reserve || call.kind == DriverCallKind::unreserve) continue;
        const bool placed = call.kind == DriverCallKind::map || call.kind == DriverCallKind::unmap;
        const std::string at = placed ? fmt::format(" +{}M", (call.address - origin(play.device)) / kMiB) : "";
        out += fmt::format("{}{}{} {}M", out.empty() ? "" : ", ", name(call.kind), at, call.bytes / kMiB);
    }
    return out;
}

// "+0[512A 2096640F] +40M[...]": mapped ranges and their blocks.
std::string memory(const Playback& play) {
    std::string out;
    const MemoryPicture picture = play.policy->picture();
    for (const SegmentPicture& segment : picture.segments) {
        out += fmt::format("{}+{}M[", out.empty() ? "" : " ", (segment.address - origin(play.device)) / kMiB);
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const BlockPicture& block = picture.blocks[segment.first_block + i];
            out +=
                fmt::format("{}{}{}", i == 0 ? "" : " ", block.size, block.state == BlockState::inactive ? "F" : "A");
        }
        out += ']';
    }
    return out;
}

Playback played(Trace trace, const std::string& spec, const Playback::Options& options = {}) {
    Playback play(std::move(trace), policy(spec), options);
    play.run();
    CHECK(describe(play.auditor.findings()) == "");
    return play;
}

Playback::Options card(const char* memory) {
    Playback::Options options;
    options.device_memory = bytes_of(memory);
    return options;
}

// A script whose buffers named in `inside` are allocated in the memory pool (0, 1).
Trace with_pool(const char* text, std::initializer_list<std::size_t> inside) {
    Trace trace = script(text);
    trace.pools = {{0, 0}, {0, 1}};
    for (const std::size_t buffer : inside) trace.buffers[buffer].pool = 1;
    return trace;
}

void add(Trace& trace, EventKind kind, std::uint32_t subject) {
    trace.events.push_back({static_cast<std::uint32_t>(kind) & 15, subject & Event::kMaxSubject});
}

constexpr const char* kHole = "a 0 50M; a 1 15M; f 0; e";  // example 29

}  // namespace

TEST_CASE("26: the first small block maps one small page", "[unit][expandable]") {
    const Playback play = played(script("a 0 512"), "expandable");
    CHECK(calls(play) == "map +0M 2M");
    CHECK(memory(play) == "+0M[512A 2096640F]");
    CHECK(play.policy->stats().segment.all.current == 0);
    CHECK(play.policy->stats().reserved_bytes.all.current == 2 * kMiB);
}

TEST_CASE("27, 28: a segment grows by what is missing, and partly used pages stay", "[unit][expandable]") {
    CHECK(calls(played(script("a 0 15M; a 1 15M"), "expandable")) == "map +0M 20M, map +20M 20M");
    CHECK(memory(played(script("a 0 15M; a 1 15M"), "expandable")) == "+0M[15728640A 15728640A 10485760F]");
    CHECK(calls(played(script("a 0 15M; a 1 15M; f 0; e"), "expandable")) == "map +0M 20M, map +20M 20M");
}

TEST_CASE("29 to 31: whole pages of a hole are unmapped and mapped again when it suffices", "[unit][expandable]") {
    const Playback hole = played(script(kHole), "expandable");
    CHECK(calls(hole) == "map +0M 60M, map +60M 20M, unmap +0M 40M");
    CHECK(memory(hole) == "+40M[10485760F 15728640A 15728640F]");
    CHECK(hole.policy->stats().reserved_bytes.all.current == 40 * kMiB);

    const Playback filled = played(script((std::string(kHole) + "; a 2 35M").c_str()), "expandable");
    CHECK(calls(filled) == "map +0M 60M, map +60M 20M, unmap +0M 40M, map +0M 40M");
    CHECK(memory(filled) == "+0M[36700160A 15728640F 15728640A 15728640F]");

    const Playback tail = played(script((std::string(kHole) + "; a 2 70M").c_str()), "expandable");
    CHECK(calls(tail) == "map +0M 60M, map +60M 20M, unmap +0M 40M, map +80M 60M");
    CHECK(memory(tail) == "+40M[10485760F 15728640A 73400320A 5242880F]");
}

TEST_CASE("32: a segment with nothing mapped is given up", "[unit][expandable]") {
    const Playback play = played(script("a 0 50M; f 0; e"), "expandable");
    CHECK(memory(play) == "");
    CHECK(play.device.calls().back().kind == DriverCallKind::unreserve);
    CHECK(play.policy->stats().reserved_bytes.all.current == 0);
}

TEST_CASE("33: a page that the card does not have is out of memory after one retry", "[unit][expandable]") {
    const Playback play = played(script("a 0 40M; a 1 40M"), "expandable", card("70M"));
    CHECK(calls(play) == "map +0M 40M");
    CHECK(play.policy->stats().num_ooms == 1);
    CHECK(play.policy->stats().num_alloc_retries == 1);
}

TEST_CASE("34: a limit is checked before pages round the request up", "[unit][expandable]") {
    Playback::Options options;
    options.limits.memory_limit = bytes_of("35M");
    const Playback play = played(script("a 0 30M"), "expandable", options);
    CHECK(play.policy->stats().num_ooms == 0);
    CHECK(play.policy->stats().reserved_bytes.all.current == 40 * kMiB);
}

TEST_CASE("max_split_size_mb defeats expandable segments: reserved memory grows without bound", "[unit][expandable]") {
    // A cache that grows by concatenation. What was freed joins into one range that soon exceeds every request by more
    // than an oversize block may, so that it serves none and new pages are mapped (tests/data/cases/kv_cat_growth.csv).
    std::string text = "a 0 140M;";
    for (int i = 1; i <= 40; ++i) text += fmt::format("a {} {}M; f {};", i, 140 + 8 * i, i - 1);
    const auto peak = [&](const char* spec) {
        return played(script(text.c_str()), spec).policy->stats().reserved_bytes.all.peak;
    };
    CHECK(peak("expandable:max_split_size_mb=100") > 4 * peak("expandable"));
}

TEST_CASE("35: blocks of a MemPool serve nobody else", "[unit][pools]") {
    const Playback play = played(with_pool("a 0 30M; f 0; a 1 30M", {0}), "caching");
    CHECK(calls(play) == "malloc 30M, malloc 30M");
    const MemoryPicture picture = play.policy->picture();
    CHECK(picture.segments.front().pool + picture.segments.back().pool == 1);
}

TEST_CASE("36: the end of a MemPool gives its segments back at once, and only its own", "[unit][pools]") {
    Trace trace = with_pool("a 0 30M; f 0; a 1 30M; f 1", {0});
    add(trace, EventKind::release_pool, 1);
    add(trace, EventKind::empty_pool, 1);
    const Playback play = played(trace, "caching");
    CHECK(calls(play) == "malloc 30M, malloc 30M, free 30M");
    CHECK(play.policy->picture().segments.front().pool == 0);
}

TEST_CASE("a pool in use keeps its segments when the cache is emptied; a released one does not", "[unit][pools]") {
    CHECK(calls(played(with_pool("a 0 30M; f 0; e", {0}), "caching")) == "malloc 30M");
    Trace released = with_pool("a 0 30M; f 0", {0});
    add(released, EventKind::release_pool, 1);
    add(released, EventKind::empty_cache, 0);
    CHECK(calls(played(released, "caching")) == "malloc 30M, free 30M");
}

TEST_CASE("37: a pool with use_on_oom lends when the card is full", "[unit][pools]") {
    const Trace trace = with_pool("a 0 60M; f 0; a 1 30M; a 2 50M", {0});
    const Playback lent = played(trace, "caching:use_on_oom_pools=[0/1]", card("100M"));
    CHECK(calls(lent) == "malloc 60M, malloc 30M");
    CHECK(lent.policy->stats().num_alloc_retries == 0);
    CHECK(lent.policy->stats().num_ooms == 0);
    CHECK(played(trace, "caching", card("100M")).policy->stats().num_ooms == 1);
}

TEST_CASE("38: a pool with no_split hands out whole segments", "[unit][pools]") {
    CHECK(memory(played(with_pool("a 0 3M", {0}), "caching:no_split_pools=[0/1]")) == "+0M[20971520A]");
}

TEST_CASE("private pools take whole segments before 2.4, pages later", "[unit][pools]") {
    const Trace trace = with_pool("a 0 3M", {0});
    CHECK(calls(played(trace, "expandable:torch_version=2.3")) == "malloc 20M");
    CHECK(calls(played(trace, "expandable:torch_version=2.11")) == "map +0M 20M");
}
