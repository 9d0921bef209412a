// What every trace format promises: for each entry of the table, on its own samples.
#include <map>
#include <set>

#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/unit/traces_support.hpp"
#include "traces/text.hpp"

using namespace fragsim;
using namespace fragsim::test;
using nlohmann::ordered_json;

namespace {

// Small, and with something of everything.
std::map<std::string, std::string, std::less<>> samples() {
    const auto entry = [](const char* action, std::int64_t address, std::int64_t size, std::int64_t stream) {
        return ordered_json{{"action", action}, {"addr", 4096 + address}, {"size", size}, {"stream", stream},
            {"time_us", 17}, {"compile_context", "N/A"},
            {"frames", {{{"name", "f"}, {"filename", "a.py"}, {"line", 3}}}}};
    };
    const ordered_json history = {entry("free", 512, 100, 0), entry("alloc", 0, 500, 0),
        entry("segment_alloc", 4 << 20, 2 << 20, 9), entry("alloc", 4 << 20, 8, 9), entry("free_requested", 0, 500, 0),
        entry("free_completed", 0, 500, 0), entry("free_requested", 4 << 20, 8, 9), entry("dance", 0, 0, 0),
        entry("free_completed", 4 << 20, 8, 9), entry("segment_free", 4 << 20, 2 << 20, 9)};
    const ordered_json segment = {{"device", 0}, {"address", 4096}, {"total_size", 2 << 20}, {"stream", 0},
        {"segment_type", "small"}, {"segment_pool_id", {0, 0}}, {"is_expandable", false},
        {"blocks", {{{"address", 4096}, {"size", 2 << 20}, {"requested_size", 0}, {"state", "inactive"}}}}};
    const ordered_json snapshot = {{"segments", {segment}}, {"device_traces", {history, ordered_json::array()}},
        {"allocator_settings", {{"max_split_size", -1}}}};
    return {{"pytorch-snapshot", pickle(snapshot)}, {"pytorch-json", snapshot.dump()},
        {"fragsim-text", "# fragsim trace 1\na 1 512\na 2 1024 7\nr 2 0\nf 2\ne\nc 2\ns\nm hello\nf 1\n"},
        {"csv-log", "op,id,size,stream\nalloc,a,512,0\nalloc,b,100,3\nfree,a,0,0\nfree,b,0,3\n"},
        {"minimalloc", "id,lower,upper,size\nb1,0,3,4\nb2,3,9,8\nb3,0,9,4\n"}};
}

std::string print(const Recording& recording) {
    std::string out;
    for (const Trace& trace : recording.traces) {
        out += write_text(trace);
        for (const SegmentPicture& segment : trace.initial.segments)
            out += fmt::format("{:x}+{} ", segment.address, segment.size);
        for (const SegmentEvent& event : trace.segment_events)
            out += fmt::format("{}:{:x}+{} ", event.before_event, event.address, event.bytes);
    }
    for (const Diagnostics::Entry& entry : recording.diagnostics.entries())
        out += fmt::format("{} {} {}\n", entry.kind, entry.count, entry.first_position);
    return out;
}

}  // namespace

TEST_CASE("the table of formats is not empty, its names are distinct and every one has a sample here",
    "[contract][readers]") {
    REQUIRE_FALSE(trace_formats().empty());
    std::set<std::string_view> names;
    for (const FormatInfo& format : trace_formats()) {
        INFO(format.name);
        CHECK(names.insert(format.name).second);
        CHECK_FALSE(format.summary.empty());
        CHECK(samples().count(format.name) == 1);
    }
}

TEST_CASE("each format recognises its own sample and no other's", "[contract][readers]") {
    for (const auto& [name, bytes] : samples())
        for (const FormatInfo& format : trace_formats()) {
            INFO(name << " seen by " << format.name);
            CHECK(format.detect(bytes) == (format.name == name));
        }
}

TEST_CASE("no format claims what is none", "[contract][readers]") {
    for (const std::string bytes :
        {"", "\n", "hello", "{}", "[]", "{\"traceEvents\": []}", "op;id;size\n", "PK\x03\x04",
            "\x7f"
            "ELF",
            "# fragsim trace 2\n", "SQLite format 3"})
        for (const FormatInfo& format : trace_formats()) {
            INFO("'" << bytes << "' seen by " << format.name);
            CHECK_FALSE(format.detect(bytes));
        }
}

TEST_CASE("a sample reads to the same trace every time and in pieces of any size", "[contract][readers]") {
    for (const auto& [name, bytes] : samples()) {
        INFO(name);
        const Recording recording = read_as(name, bytes);
        REQUIRE(recording.traces.size() == 1);
        CHECK(recording.traces[0].ops > 0);
        const std::string expected = print(recording);
        for (const std::size_t step : {1u, 3u, 64u}) CHECK(print(read_as(name, bytes, step)) == expected);
    }
}

TEST_CASE("what a reader makes keeps the rules of a trace", "[contract][readers]") {
    for (const auto& [name, bytes] : samples()) {
        INFO(name);
        for (const Trace& trace : read_as(name, bytes).traces) {
            std::uint32_t ops = 0;
            for (const Event& event : trace.events) {
                ops += is_op(event.kind());
                if (is_op(event.kind())) CHECK(event.subject < trace.buffers.size());
            }
            CHECK(trace.ops == ops);
            CHECK((trace.time_us.empty() || trace.time_us.size() == trace.events.size()));
            CHECK(std::is_sorted(trace.streams.begin(), trace.streams.end()));
            REQUIRE_FALSE(trace.pools.empty());
            CHECK(trace.pools[0] == std::pair<std::int64_t, std::int64_t>(0, 0));
            for (const Buffer& buffer : trace.buffers) {
                CHECK(buffer.requested > 0);
                CHECK(buffer.stream < trace.streams.size());
                CHECK(buffer.pool < trace.pools.size());
            }
        }
    }
}

TEST_CASE(
    "a sample cut or changed anywhere gives a trace or an error, and the error names the file", "[contract][readers]") {
    for (const auto& [name, bytes] : samples())
        for (std::size_t at = 0; at < bytes.size(); ++at)
            for (const std::string& damaged : {bytes.substr(0, at),
                     bytes.substr(0, at) + static_cast<char>(bytes[at] ^ 0x41) + bytes.substr(at + 1)}) {
                try {
                    read_as(name, damaged);
                } catch (const Error& error) {
                    if (error.code() != ErrorCode::input || !contains(error.what(), "run"))
                        FAIL_CHECK(name << " at " << at << ": " << error.what());
                }
            }
}
