#include "tests/support/catch.hpp"
#include "tests/unit/traces_support.hpp"
#include "traces/text.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

Trace text(const std::string& lines) { return read_as("fragsim-text", "# fragsim trace 1\n" + lines).traces.at(0); }
std::string text_error(const std::string& lines) {
    return error_of([&] { text(lines); });
}
Recording csv(const std::string& content) { return read_as("csv-log", content); }
std::string csv_error(const std::string& content) {
    return error_of([&] { csv(content); });
}
std::vector<EventKind> kinds(const Trace& trace) {
    std::vector<EventKind> out;
    for (const Event& event : trace.events) out.push_back(event.kind());
    return out;
}

}  // namespace

TEST_CASE("every line of the text form becomes its event", "[unit][traces][text]") {
    const Trace trace = text("a one 512\na two 1024 0x20\nr one 32\nf one\ne\nc one\ns 7\ns\nm step 1\nf two\n");
    CHECK(kinds(trace) == std::vector<EventKind>{EventKind::alloc, EventKind::alloc, EventKind::record_stream,
                              EventKind::free_requested, EventKind::empty_cache, EventKind::free_completed,
                              EventKind::synchronize, EventKind::synchronize, EventKind::marker, EventKind::free});
    CHECK(trace.ops == 4);
    CHECK(trace.streams == std::vector<std::uint64_t>{0, 7, 32});
    CHECK(trace.buffers[1].stream == 2);
    CHECK(trace.events[6].subject == 1);
    CHECK(trace.events[7].subject == Event::kAllStreams);
    CHECK(trace.markers.at(0) == "step 1");
    CHECK(trace.stream_uses.at(0).stream == StreamId{2});
    CHECK(trace.completeness == Completeness::complete);
    CHECK_FALSE(trace.final);
}

TEST_CASE(
    "a free that nothing completes takes effect at once, also when its id is used again", "[unit][traces][text]") {
    CHECK(kinds(text("a 1 8\nf 1\na 1 8\nf 1\nc 1")) == std::vector<EventKind>{EventKind::alloc, EventKind::free,
                                                            EventKind::alloc, EventKind::free_requested,
                                                            EventKind::free_completed});
}

TEST_CASE("blank lines, comments and either line end are read over", "[unit][traces][text]") {
    CHECK(text("\r\n# note\r\n  a  1\t8 \r\nf 1").ops == 2);
}

TEST_CASE("what is wrong with a text line is said with its number", "[unit][traces][text]") {
    CHECK(text_error("a 1 8\nx 1\n") == "run:3: unknown line 'x'");
    CHECK(text_error("f 9\n") == "run:2: allocation 9 is unknown");
    CHECK(text_error("a 1 8\nf 1\nf 1\n") == "run:4: allocation 1 is freed already");
    CHECK(text_error("a 1 8\na 1 8\n") == "run:3: second allocation of 1 without a free");
    CHECK(text_error("a 1 8\nc 1\n") == "run:3: no free of 1 to complete");
    CHECK(text_error("a 1 0\n") == "run:2: size '0' is no number of bytes");
    CHECK(text_error("a 1 -8\n") == "run:2: size '-8' is no number of bytes");
    CHECK(text_error("a 1 99999999999999999999\n") == "run:2: size '99999999999999999999' is no number of bytes");
    CHECK(text_error("a 1 4611686018427387904\n") == "run:2: size '4611686018427387904' is no number of bytes");
    CHECK(text_error("a 1 8 side\n") == "run:2: stream 'side' is no number");
    CHECK(text_error("a 1 8 0 0\n") == "run:2: '0' too much");
    CHECK(text_error("a\n") == "run:2: no id");
    CHECK(text_error("a 1 8\nr 1\n") == "run:3: stream '' is no number");
}

TEST_CASE("what is written reads back the same", "[unit][traces][text]") {
    const std::string lines = "# fragsim trace 1\na 0 512\na 1 1024 32\nr 0 32\nf 0\ne\nc 0\ns\ns 32\nm step 1\nf 1\n";
    const Trace trace = read_as("fragsim-text", lines).traces.at(0);
    CHECK(write_text(trace) == lines);
}

TEST_CASE("what was in use at the start is written as allocations", "[unit][traces][text]") {
    const Recording recording = read_as("pytorch-snapshot",
        pickle_json(
            R"({"segments": [{"device": 0, "address": 4096, "total_size": 2097152, "stream": 0, "segment_type": "small",
        "blocks": [{"size": 2097152, "state": "inactive"}]}], "device_traces": [[{"action": "free_completed", "addr": 4096, "size": 100, "stream": 0},
        {"action": "free", "addr": 8192, "size": 200, "stream": 0}, {"action": "oom", "device_free": 0, "size": 512, "stream": 0}]]})"));
    CHECK(write_text(recording.traces.at(0)) ==
          "# fragsim trace 1\na 0 100\na 1 200\nf 0\nc 0\nf 1\nm out of memory for 512 bytes\n");
}

TEST_CASE("a CSV log needs op, id or ptr, and size; the order of columns is free", "[unit][traces][csv]") {
    const Recording recording =
        csv("note,SIZE,time_us, op ,stream,id\r\n\"a, "
            "b\",512,10,alloc,5,x\r\n,,20,free,,x\r\n\r\n,8,30,malloc,0x2,y\r\n,,40,deallocate,,y");
    const Trace& trace = recording.traces.at(0);
    CHECK(kinds(trace) == std::vector<EventKind>{EventKind::alloc, EventKind::free, EventKind::alloc, EventKind::free});
    CHECK(trace.time_us == std::vector<std::int64_t>{10, 20, 30, 40});
    CHECK(trace.streams == std::vector<std::uint64_t>{2, 5});
    CHECK(trace.buffers[0].stream == 1);
    CHECK(trace.buffers[0].recorded_address == 0);
}

TEST_CASE("pointers are kept as recorded addresses and may be used again", "[unit][traces][csv]") {
    const Trace trace = csv("op,ptr,size\nallocate,0x7f00,8\nfree,0x7f00,8\nalloc,0x7f00,16\n").traces.at(0);
    CHECK(trace.buffers.at(1).recorded_address == 0x7f00);
    CHECK(trace.time_us.empty());
}

TEST_CASE("an allocation of no bytes is counted and has no events, nor has its free", "[unit][traces][csv]") {
    const Recording recording = csv("op,id,size\nalloc,a,0\nfree,a,0\n");
    CHECK(recording.traces.at(0).events.empty());
    CHECK(recording.diagnostics.entries().at(0).kind == "allocation of no bytes");
    CHECK(recording.diagnostics.entries().at(0).first_position == "line 2");
}

TEST_CASE("what is wrong with a CSV row is said with its line", "[unit][traces][csv]") {
    const std::string header = "op,id,size,stream,time_us\n";
    CHECK(csv_error(header + "free,0x7f3a,0,0,0\n") == "run:2: free of unknown allocation 0x7f3a");
    CHECK(csv_error(header + "alloc,a,8,0,0\nfree,a,,0,0\nfree,a,,0,0\n") == "run:4: second free of a");
    CHECK(csv_error(header + "alloc,a,8,0,0\nalloc,a,8,0,0\n") == "run:3: second allocation of a without a free");
    CHECK(csv_error(header + "alloc,a,8x,0,0\n") == "run:2: size '8x' is no number of bytes");
    CHECK(csv_error(header + "alloc,a,-8,0,0\n") == "run:2: size '-8' is no number of bytes");
    CHECK(csv_error(header + "alloc,a,8,main,0\n") == "run:2: stream 'main' is no number");
    CHECK(csv_error(header + "alloc,a,8,0,soon\n") == "run:2: time_us 'soon' is no whole number");
    CHECK(csv_error(header + "resize,a,8,0,0\n") == "run:2: unknown op 'resize'");
    CHECK(csv_error(header + "alloc,,8,0,0\n") == "run:2: no id");
    CHECK(csv_error("op,id,size,id\n") == "run:1: a column twice");
}
