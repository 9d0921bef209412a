// Snapshots as JSON: they must say what the pickle says, whatever the bytes look like, and nothing at all when damaged.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tests/fuzz/span_source.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"
#include "tests/unit/traces_support.hpp"

using namespace fragsim;
using namespace fragsim::test;
using nlohmann::ordered_json;

namespace {

void print(std::vector<std::string>& out, const char* name, const MemoryPicture& picture) {
    for (const SegmentPicture& segment : picture.segments)
        out.push_back(fmt::format("{} segment {:x} {} stream {} pool {} {} {} blocks {} {}", name, segment.address,
            segment.size, segment.stream.value, segment.pool, segment.small, segment.expandable, segment.first_block,
            segment.block_count));
    for (const BlockPicture& block : picture.blocks)
        out.push_back(fmt::format("{} block {:x} {} {} buffer {} state {}", name, block.address, block.size,
            block.requested, block.buffer.value, static_cast<int>(block.state)));
}

// Everything but path, format and hash, a line each.
std::vector<std::string> print(const Recording& recording) {
    std::vector<std::string> out;
    for (const Trace& trace : recording.traces) {
        out.push_back(fmt::format("device {} completeness {} ops {} inferred {} {}", trace.device,
            static_cast<int>(trace.completeness), trace.ops, trace.inferred_empty_caches, trace.inferred_pools));
        for (std::size_t i = 0; i < trace.events.size(); ++i)
            out.push_back(
                fmt::format("event {} kind {} subject {} time {}", i, static_cast<int>(trace.events[i].kind()),
                    std::uint32_t{trace.events[i].subject}, trace.time_us.empty() ? -1 : trace.time_us[i]));
        for (const Buffer& buffer : trace.buffers)
            out.push_back(fmt::format("buffer {} at {:x} stream {} pool {} stack {}", buffer.requested,
                buffer.recorded_address, buffer.stream, buffer.pool, buffer.stack.value));
        for (const std::uint64_t stream : trace.streams) out.push_back(fmt::format("stream {:x}", stream));
        for (const auto& [first, second] : trace.pools) out.push_back(fmt::format("pool {} {}", first, second));
        for (const StreamUse& use : trace.stream_uses)
            out.push_back(fmt::format("use {} {}", use.buffer.value, use.stream.value));
        for (const RecordedOom& oom : trace.ooms)
            out.push_back(fmt::format("oom {} {} {}", oom.requested, oom.device_free, oom.stream.value));
        for (const std::string& marker : trace.markers) out.push_back("marker " + marker);
        for (const SegmentEvent& event : trace.segment_events)
            out.push_back(fmt::format("segment event {} kind {} stream {} {:x} {}", event.before_event,
                static_cast<int>(event.kind), event.stream.value, event.address, event.bytes));
        print(out, "initial", trace.initial);
        if (trace.final) print(out, "final", *trace.final);
        for (const StackFrame& frame : trace.frames)
            out.push_back(fmt::format("frame {} {}:{}", frame.function, frame.file, frame.line));
        out.push_back(
            fmt::format("stacks {} | {}", fmt::join(trace.stack_begin, " "), fmt::join(trace.stack_frames, " ")));
    }
    if (recording.settings) {
        out.push_back("alloc_conf " + recording.settings->alloc_conf);
        for (const auto& [key, value] : recording.settings->values)
            out.push_back(fmt::format("setting {}={}", key, value));
    }
    for (const Annotation& annotation : recording.annotations)
        out.push_back(fmt::format("annotation {} {} {} {}", static_cast<int>(annotation.stage), annotation.device,
            annotation.time_us, annotation.name));
    for (const Diagnostics::Entry& entry : recording.diagnostics.entries())
        out.push_back(fmt::format("{} {} {}", entry.kind, entry.count, entry.first_position));
    return out;
}

void check_same(const Recording& json, const Recording& pickle) {
    const std::vector<std::string> got = print(json), expected = print(pickle);
    const auto [at, _] = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end());
    const auto line = static_cast<std::size_t>(at - got.begin());
    INFO("line " << line << "\njson:   " << (line < got.size() ? got[line] : "(end)")
                 << "\npickle: " << (line < expected.size() ? expected[line] : "(end)"));
    CHECK(got == expected);
}

// Spelled out because compilers differ about {x}: a list of x, or x.
template <class... Items>
ordered_json list(Items... items) {
    return ordered_json::array({ordered_json(std::move(items))...});
}

constexpr std::int64_t kBase = 0x7f0000000000;

ordered_json entry(const char* action, std::int64_t offset, std::int64_t size) {
    return {{"action", action}, {"addr", kBase + offset}, {"size", size}, {"stream", 0}, {"time_us", 1000}};
}
ordered_json block(std::int64_t size, const char* state, std::int64_t requested) {
    return {{"size", size}, {"requested_size", requested}, {"state", state}, {"frames", ordered_json::array()}};
}
ordered_json segment(std::int64_t offset, std::int64_t size, ordered_json blocks, std::int64_t device = 0) {
    return {{"device", device}, {"address", kBase + offset}, {"total_size", size}, {"stream", 0},
        {"segment_type", "small"}, {"segment_pool_id", list(0, 0)}, {"is_expandable", false},
        {"frames", ordered_json::array()}, {"blocks", std::move(blocks)}};
}
ordered_json stack(int depth) {
    ordered_json frames = ordered_json::array();
    for (int i = 0; i < depth; ++i)
        frames.push_back({{"name", fmt::format("f{}", i)}, {"filename", "/usr/lib/a \"quoted\" name.py"}, {"line", i}});
    return frames;
}

// Stacks, pools, settings, annotations, two devices, an entry of every kind.
ordered_json whole_snapshot() {
    ordered_json history = list(entry("segment_alloc", 0, 2 << 20));
    for (int i = 0; i < 40; ++i) {
        ordered_json made = entry("alloc", 512 * i, 100 + i);
        made["pool_id"] = list(0, i % 3);
        made["frames"] = stack(i % 7);
        made["forward_frames"] = list("a", "b");
        made["user_metadata"] = fmt::format("step {}", i);
        history.push_back(made);
    }
    for (int i = 0; i < 39; ++i) {
        history.push_back(entry("free_requested", 512 * i, 100 + i));
        if (i % 5 != 0) history.push_back(entry("free_completed", 512 * i, 100 + i));
    }
    for (int i = 0; i < 39; i += 5) history.push_back(entry("free_completed", 512 * i, 100 + i));
    history.push_back({{"action", "oom"}, {"device_free", 77}, {"size", 2048}, {"stream", -1}, {"time_us", 5}});
    ordered_json live = block(512, "active_allocated", 139);
    live["frames"] = stack(3);
    return {
        {"segments", list(segment(0, 2 << 20,
                              list(block(39 * 512, "inactive", 0), live, block((2 << 20) - 40 * 512, "inactive", 0))),
                         segment(4 << 20, 2 << 20, list(block(2 << 20, "inactive", 0)), 1))},
        {"device_traces", list(history, list(entry("segment_alloc", 4 << 20, 2 << 20)))},
        {"allocator_settings", {{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128"}, {"max_split_size", -1},
                                   {"garbage_collection_threshold", 0.0}, {"expandable_segments", false},
                                   {"roundup_power2_divisions", {{"1", 4}, {"2", 0}}}}},
        {"external_annotations",
            list(ordered_json{{"stage", "START"}, {"name", "st\xc3\xa9p\n"}, {"device", 0}, {"time_us", 7}})}};
}

Recording read(const std::string& json) { return read_as("pytorch-json", json); }
std::string error_in(const std::string& json) {
    return error_of([&] { read(json); });
}
// One entry, an allocation, with `fields` beside its action.
std::string with_entry(const std::string& fields) {
    return "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", " + fields + "}]]}";
}
std::int64_t count_of(const Recording& recording, std::string_view kind) {
    for (const Diagnostics::Entry& entry : recording.diagnostics.entries())
        if (entry.kind == kind) return entry.count;
    return 0;
}
bool recognised(std::string_view head) {
    for (const FormatInfo& format : trace_formats())
        if (format.name == "pytorch-json") return format.detect(head);
    return false;
}
std::string repeat(std::string_view text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
}

// Entries with addresses of their own, `frames` written into each.
std::string history_of(int entries, std::string_view frames) {
    std::string json = "{\"device_traces\": [[";
    for (int i = 0; i < entries; ++i)
        json += fmt::format("{}{{\"action\": \"alloc\", \"addr\": {}, \"size\": 512, \"stream\": 0, \"frames\": {}}}",
            i > 0 ? ", " : "", kBase + 512 * i, frames);
    return json + "]]}";
}

// KiB that reading takes at its peak beyond what the process has; measured in a child, where the peak begins afresh.
long peak_of_reading(std::string json) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const auto peak = [] {
            rusage usage{};
            ::getrusage(RUSAGE_SELF, &usage);
            return usage.ru_maxrss;
        };
        const long before = peak();
        long grown = -1;
        try {
            Input input(
                std::make_unique<fuzz::SpanSource>(reinterpret_cast<const std::uint8_t*>(json.data()), json.size()),
                "run");
            for (const FormatInfo& format : trace_formats())
                if (format.name == "pytorch-json" && format.read(input).traces.size() == 1) grown = peak() - before;
        } catch (const Error&) {}
        const bool written = ::write(ends[1], &grown, sizeof grown) == sizeof grown;
        ::_exit(written ? 0 : 1);
    }
    ::close(ends[1]);
    long grown = -1;
    CHECK(::read(ends[0], &grown, sizeof grown) == sizeof grown);
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    return grown;
}

}  // namespace

TEST_CASE("a recording written as JSON reads as the pickle does, field by field", "[unit][traces][json]") {
    for (const std::string name : {"streams.default", "twodev.default"}) {
        INFO(name);
        const Recording json = read_recording(source_dir() + "/tests/data/" + name + ".json.gz");
        CHECK(json.format == "pytorch-json");
        CHECK(json.traces.at(0).ops > 10);
        check_same(json, read_recording(source_dir() + "/traces/samples/" + name + ".pickle.gz"));
    }
}

TEST_CASE("a recording with 29215 frames written as JSON reads as the pickle does", "[unit][traces][json][shared]") {
    const auto pickle = shared_file("truth/workloads/profile.default.pickle.gz");
    if (!pickle) return;
    const Recording json = read_recording(source_dir() + "/tests/data/profile.default.json.zst");
    CHECK(json.traces.at(0).frames.size() > 20);
    check_same(json, read_recording(*pickle));
}

TEST_CASE("everything a snapshot can hold is the same in JSON and in a pickle, in pieces of any size",
    "[unit][traces][json]") {
    const ordered_json document = whole_snapshot();
    const Recording expected = read_as("pytorch-snapshot", pickle(document));
    REQUIRE(expected.traces.size() == 2);
    CHECK(expected.traces[0].frames.size() == 6);
    CHECK(expected.traces[0].pools.size() == 3);
    for (const std::string& json :
        {document.dump(), document.dump(2), document.dump(-1, ' ', true), "\xef\xbb\xbf\r\n" + document.dump() + "\n"})
        for (const std::size_t step : {~std::size_t{0}, std::size_t{1}, std::size_t{7}})
            check_same(read_as("pytorch-json", json, step), expected);
}

TEST_CASE("equal call stacks are one again however often JSON repeats them", "[unit][traces][json]") {
    const std::string frames = stack(30).dump(), other = stack(29).dump();
    const std::string json = history_of(2000, frames);
    const Trace trace = read(json.substr(0, json.size() - 3) + "," + history_of(2000, other).substr(20)).traces.at(0);
    CHECK(trace.buffers.size() == 4000);
    CHECK(trace.frames.size() == 30);
    CHECK(trace.stack_begin == std::vector<std::uint32_t>{0, 30, 59});
}

TEST_CASE("call stacks that repeat cost no memory", "[unit][traces][json]") {
    constexpr int kEntries = 20000;
    const long plain = peak_of_reading(history_of(kEntries, "[]"));
    const long with_stacks = peak_of_reading(history_of(kEntries, stack(40).dump()));  // 50 MB
    CHECK(plain > 0);
    CHECK(with_stacks > 0);
    CHECK(with_stacks < plain + 2048);
}

TEST_CASE("a bare list of segments, also of none that has blocks", "[unit][traces][json]") {
    const ordered_json segments = list(segment(0, 2 << 20, list(block(2 << 20, "inactive", 0))));
    check_same(read(segments.dump()), read_as("pytorch-snapshot", pickle(segments)));
    CHECK(count_of(read(list(segment(0, 2 << 20, ordered_json::array())).dump()), "blocks do not tile their segment") ==
          1);
}

TEST_CASE("snapshots in JSON are recognised, other JSON is not", "[unit][traces][json]") {
    for (const std::string head : {R"({"segments": [)", R"( {"device_traces": []})",
             R"({"step": {"a": [1, "}"]}, "note": "x\"}", "device_traces" : [[)",
             R"({"allocator_settings": {}, "device_)", R"([{"device": 0, "address": 1, "total_size": 2)",
             R"([{"active_size": 0)", "\xef\xbb\xbf{\"segments\":"}) {
        INFO(head);
        CHECK(recognised(head));
    }
    for (const std::string head : {R"({"traceEvents": [{"name": "segments"}]})",
             R"({"schemaVersion": 1, "deviceProperties": [{"segments": 1}], "traceEvents": [)",
             R"([{"ph": "X", "name": "total_size"}])", R"({"name": "segments", "kind": "device_traces"})",
             R"([[1, 2], [3, 4]])", R"([])", R"({})", R"([{}])", "{", "[", R"({"a": "\)", R"({"segments")",
             R"("segments":)", R"({"x": 1} {"segments": [)", R"(}{"segments": [)", R"({'segments': [)"}) {
        INFO(head);
        CHECK_FALSE(recognised(head));
    }
}

TEST_CASE("a user's own keys beside the snapshot's change nothing, in JSON and in a pickle", "[unit][traces][json]") {
    const ordered_json document = whole_snapshot();
    ordered_json extended = {{"filename", "run.py"}, {"stage", 3}, {"state", nullptr},
        {"action", ordered_json::array()}, {"total_size", "much"}, {"real_size", 0.5}};
    extended.update(document);
    extended["notes"] = {{"rank", 3}, {"ranks", list(1, 2, 3)}};
    check_same(read(extended.dump()), read(document.dump()));
    ordered_json plain = {{"filename", "run.py"}, {"stage", 3}};
    plain.update(document);
    check_same(read_as("pytorch-snapshot", pickle(plain)), read(document.dump()));
    // A pickle may set key by key.
    using namespace std::string_literals;
    const std::string whole = pickle(document);
    const std::string one_by_one = "\x80\x04}X\x08\0\0\0filenameX\x06\0\0\0run.pys"s + whole.substr(3);
    check_same(read_as("pytorch-snapshot", one_by_one), read(document.dump()));
    // What is dropped may look like a snapshot that is none, but not like something else than JSON.
    CHECK(read(R"({"x": {"action": 5, "frames": {"size": -1}, "a": 1, "a": 2}, "segments": []})").traces.empty());
    CHECK(
        contains(error_in(R"({"x": {"action" 5}, "segments": []})"), "run: offset 16: '5' where a colon was expected"));
}

TEST_CASE("numbers as strings and integers as floats are read, the floats counted", "[unit][traces][json]") {
    const Recording recording =
        read(with_entry(R"("addr": "0x7f0000000000", "size": "512", "stream": "0x10", "time_us": "12")"));
    const Buffer& buffer = recording.traces.at(0).buffers.at(0);
    CHECK(buffer.recorded_address == kBase);
    CHECK(buffer.requested == 512);
    CHECK(recording.traces[0].streams == std::vector<std::uint64_t>{16});
    CHECK(recording.traces[0].time_us == std::vector<std::int64_t>{12});
    CHECK(count_of(recording, "integer written as a float") == 0);

    const Recording floats = read(with_entry(R"("addr": 139637976727552.0, "size": 5.12e2, "stream": -0.0)"));
    CHECK(floats.traces.at(0).buffers.at(0).recorded_address == kBase);
    CHECK(floats.traces[0].buffers[0].requested == 512);
    CHECK(count_of(floats, "integer written as a float") == 3);
    CHECK(floats.diagnostics.entries()[0].first_position == "offset 64");

    CHECK(contains(error_in(with_entry(R"("addr": 1, "size": 0.5)")), "size is a float, not an integer"));
    CHECK(contains(error_in(with_entry(R"("addr": 1e300, "size": 1)")), "addr is a float, not an integer"));
    CHECK(contains(error_in(with_entry(R"("addr": "0x", "size": 1)")), "addr is a string, not an integer"));
    CHECK(contains(error_in(with_entry(R"("addr": "12 ", "size": 1)")), "addr is a string, not an integer"));
}

TEST_CASE("numbers out of range are errors with their place", "[unit][traces][json]") {
    CHECK(contains(error_in(with_entry(R"("size": 1e400)")), "run: offset 64: the number 1e400 is out of range"));
    CHECK(contains(
        error_in(with_entry(R"("size": 123456789012345678901234567890)")), "size is an integer of more than 63 bits"));
    CHECK(
        contains(error_in(with_entry(R"("size": )" + repeat("9", 100000))), "size is an integer of more than 63 bits"));
    CHECK(contains(
        error_in(with_entry(R"("size": 0.)" + repeat("0", 100000) + "x")), "'x' where a comma or '}' was expected"));
    CHECK(contains(error_in(with_entry(R"("size": 18446744073709551615)")), "size is an integer of more than 63 bits"));
    CHECK(contains(error_in(with_entry(R"("size": 4611686018427387904)")), "size cannot be 4611686018427387904"));
    CHECK(contains(error_in(with_entry(R"("size": -512)")), "run: offset 69: size cannot be -512"));
    CHECK(contains(error_in(with_entry(R"("addr": -1)")), "addr cannot be -1"));
    CHECK(contains(error_in(with_entry(R"("addr": "-1")")), "addr cannot be -1"));
    CHECK(read(with_entry(R"("addr": 4611686018427387903, "size": 999999999999999999, "stream": -9223372036854775807)"))
              .traces.at(0)
              .streams[0] == 0x8000000000000001u);
}

TEST_CASE("text that is not JSON is an error that says what is wrong and where", "[unit][traces][json]") {
    const auto item = [](const std::string& text) { return error_in("[" + text + "]"); };
    CHECK(contains(item("NaN"), "run: offset 1: NaN is no number of JSON"));
    CHECK(contains(item("Infinity"), "offset 1: Infinity is no number"));
    CHECK(contains(item("-Infinity"), "offset 1: -Infinity is no number"));
    for (const std::string number :
        {"01", "-", "+1", ".5", "1.", "1e", "1e+", "-01", "0x10", "1-2", "--1", "00", "1.e5"}) {
        INFO(number);
        CHECK(contains(item(number), "run: offset "));
        CHECK(contains(item(number), "expected"));
    }
    CHECK(contains(item("1 2"), "offset 3: '2' where a comma or ']' was expected"));
    CHECK(contains(item("1,"), "offset 3: ']' where a value was expected"));
    CHECK(contains(item("}"), "offset 1: '}' where a value was expected"));
    CHECK(contains(item("{]"), "offset 2: ']' where a key was expected"));
    CHECK(contains(item("{\"a\" 1}"), "where a colon was expected"));
    CHECK(contains(item("{\"a\":1,}"), "'}' where a key was expected"));
    CHECK(contains(item("{a:1}"), "'a' where a key was expected"));
    CHECK(contains(item("{'a':1}"), "where a key was expected"));
    CHECK(contains(item("nul"), "'n' where a value was expected"));
    CHECK(contains(item("truefalse"), "'f' where a comma"));
    CHECK(contains(item("\"a\nb\""), "offset 3: control character 0x0a in a string"));
    CHECK(contains(item("\"\\x41\""), "unknown escape '\\x' in a string"));
    CHECK(contains(item("\"\\u12g4\""), "\\u without four hexadecimal digits"));
    CHECK(contains(item("\"\\u12\""), "\\u without four hexadecimal digits"));
    CHECK(contains(item(std::string(1, '\0')), "byte 0x00 where a value was expected"));
    CHECK(contains(item("\x80"), "byte 0x80 where a value was expected"));
    CHECK(contains(error_in("{\"segments\": []}\n{\"segments\": []}"), "offset 17: something follows the snapshot"));
    CHECK(contains(error_in("{\"segments\": []}]"), "something follows"));
}

TEST_CASE("the reader takes for JSON exactly what another parser takes for it", "[unit][traces][json]") {
    const std::string text = R"([{"a\u00e9\n": -0.5e+1, "b": [true, false, null, 10, ""]}, {}, [], 0, "\\\""])";
    const std::string letters = "\"\\{}[],:.-+eE019 \ntu/\x1f";
    const auto accepted = [](const std::string& document, std::size_t step) {
        try {
            read_as("pytorch-json", document, step);
            return true;
        } catch (const Error&) {
            return false;
        }
    };
    int taken = 0, refused = 0;
    for (std::size_t at = 0; at <= text.size(); ++at)
        for (std::size_t letter = 0; letter <= letters.size(); ++letter)
            for (const bool insert : {false, true}) {
                std::string changed = text;
                changed.replace(at, insert ? 0 : 1, letters.substr(letter, 1));  // the last one takes a letter out
                const std::string document = "{\"x\": " + changed + ", \"segments\": []}";
                const bool expected = nlohmann::json::accept(document);
                (expected ? taken : refused) += 1;
                if (accepted(document, (at + letter) % 2 == 0 ? 1 : 4096) != expected)
                    FAIL_CHECK((expected ? "refused: " : "taken: ") << document);
            }
    CHECK(taken > 500);
    CHECK(refused > 1000);
}

TEST_CASE("escapes are what they stand for", "[unit][traces][json]") {
    const auto name = [](const std::string& json) {
        const Recording recording = read(R"({"segments": [], "external_annotations": [{"stage": "START", "name": )" +
                                         json + R"(, "device": 0, "time_us": 1}]})");
        return recording.annotations.at(0).name;
    };
    CHECK(name(R"("a\"\\\/\b\f\n\r\tz")") == "a\"\\/\b\f\n\r\tz");
    CHECK(name(R"("\u0041\u00e9\u20AC")") == "A\xc3\xa9\xe2\x82\xac");
    CHECK(name(R"("\ud83d\ude00!")") == "\xf0\x9f\x98\x80!");
    CHECK(name(R"("\udc80|\ud800|\ud800\u0041")") ==
          "\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd"
          "A");
    CHECK(name("\"\xc3\xa9\x7f\"") == "\xc3\xa9\x7f");
    CHECK(name("\"" + repeat("long ", 100000) + "\\n\"") == repeat("long ", 100000) + "\n");
}

TEST_CASE("JSON cut anywhere is an error that says so, at the place where it ends", "[unit][traces][json]") {
    std::string json =
        R"({"x": [1.5e3, "\u00e9", true, null], "segments": )" +
        list(segment(0, 2 << 20, list(block(2 << 20, "inactive", 0)))).dump() +
        R"(, "device_traces": [[{"action": "alloc", "addr": 139637976727552, "size": 512, "frames": [{"name": "f", "filename": "a.py", "line": 1}]}]]})";
    REQUIRE_NOTHROW(read(json));
    for (std::size_t length = 1; length < json.size(); ++length) {
        INFO("length " << length);
        CHECK(contains(error_in(json.substr(0, length)),
            "run: offset " + std::to_string(length) + ": the JSON ends in the middle"));
    }
}

TEST_CASE("a key that comes twice is an error that names it", "[unit][traces][json]") {
    CHECK(contains(
        error_in(with_entry(R"("size": 1, "size": 2)")), "run: offset 77: the key 'size' comes twice in one object"));
    CHECK(contains(error_in(with_entry(R"("addr": 1, "size": 2, "action": "free")")), "the key 'action' comes twice"));
    CHECK(contains(error_in(with_entry(R"("mine": 1, "size": 2, "mine": 1)")), "the key 'mine' comes twice"));
    CHECK(contains(error_in(R"({"segments": [], "segments": []})"), "the key 'segments' comes twice"));
    CHECK(contains(error_in(with_entry(R"("frames": [{"name": "f", "filename": "a", "line": 1, "line": 1}])")),
        "the key 'line' comes twice"));
    // Many keys that differ are none of it, and cost no more than sorting them.
    std::string many;
    for (int i = 0; i < 100000; ++i) many += fmt::format("\"k{}\": 0, ", i);
    CHECK_NOTHROW(read("{\"allocator_settings\": {" + many + "\"k\": 0}, \"segments\": []}"));
    CHECK(contains(
        error_in("{\"allocator_settings\": {" + many + "\"k77\": 0}, \"segments\": []}"), "the key 'k77' comes twice"));
}

TEST_CASE("the wrong thing in the wrong place is an error that says what stands where", "[unit][traces][json]") {
    CHECK(contains(error_in(R"({"segments": {"0": []}})"), "run: segments is a dict, not a list"));
    CHECK(contains(error_in(R"({"segments": [[]]})"), "run: a segment is a list, not a dict with a total_size"));
    CHECK(contains(error_in(R"({"segments": [{"blocks": []}]})"), "a segment is a dict, not a dict with a total_size"));
    CHECK(contains(error_in(R"({"device_traces": {}})"), "device_traces is a dict, not a list"));
    CHECK(contains(error_in(R"({"device_traces": [{}]})"), "an entry of a history is a dict, not part of a list"));
    CHECK(contains(error_in(R"({"device_traces": [[[]]]})"), "an entry of a history is a list"));
    CHECK(contains(
        error_in(R"([{"total_size": 1, "blocks": 7}])"), "run: offset 31: a block is an integer, not part of a list"));
    CHECK(contains(error_in(R"([{"total_size": 1, "blocks": [{"size": 7}]}])"),
        "a block is a dict, not a dict with the keys of one"));
    CHECK(contains(error_in(with_entry(R"("pool_id": [0])")), "a memory pool is a list, not a pair of integers"));
    CHECK(contains(error_in(with_entry(R"("pool_id": [0, 0.5])")), "a pool's number is a float"));
    CHECK(contains(error_in(R"({"segments": null})"), "segments is None"));
    CHECK(contains(error_in("5"), "the file holds an integer, not a memory snapshot"));
    CHECK(contains(error_in(R"({"traceEvents": []})"), "the file holds a dict without segments and device_traces"));
}

TEST_CASE("depth without end is an error that costs nothing", "[unit][traces][json]") {
    CHECK(contains(error_in(repeat("[", 100000)), "run: offset 1001: nested more than 1000 deep"));
    CHECK(contains(error_in("{\"segments\": " + repeat("{\"a\":", 100000)), "nested more than 1000 deep"));
    CHECK(contains(error_in("{\"x\": " + repeat("[", 100000)), "nested more than 1000 deep"));
    CHECK_NOTHROW(read("{\"x\": " + repeat("[", 999) + repeat("]", 999) + ", \"segments\": []}"));
}

TEST_CASE(
    "a snapshot that contradicts itself is counted with its place, in JSON and in a pickle", "[unit][traces][json]") {
    const auto both = [](const ordered_json& segments, std::string_view kind, std::string_view place) {
        const ordered_json document = {{"segments", segments}, {"device_traces", ordered_json::array()}};
        const Recording recording = read(document.dump());
        check_same(recording, read_as("pytorch-snapshot", pickle(document)));
        REQUIRE(recording.diagnostics.entries().size() == 1);
        CHECK(recording.diagnostics.entries()[0].kind == kind);
        CHECK(recording.diagnostics.entries()[0].first_position == place);
    };
    const ordered_json free = list(block(2 << 20, "inactive", 0));
    both(list(segment(0, 2 << 20, free), segment(1 << 20, 2 << 20, free)), "segments overlap",
        "device 0, segment 0x7f0000100000");
    both(list(segment(0, 2 << 20, list(block(512, "inactive", 0)))), "blocks do not tile their segment",
        "device 0, segment 0x7f0000000000");
    both(list(segment(0, 1 << 20, free)), "blocks do not tile their segment", "device 0, segment 0x7f0000000000");
    both(list(segment(0, 2 << 20, free, 1024)), "segment of a device that cannot be",
        "device 1024, segment 0x7f0000000000");
    both(
        list(segment(0, 2 << 20, free, -1)), "segment of a device that cannot be", "device -1, segment 0x7f0000000000");
    CHECK(read(list(segment(0, 2 << 20, free, 1023)).dump()).traces.at(0).device == 1023);
    CHECK(
        count_of(
            read(
                R"({"segments": [], "external_annotations": [{"stage": "START", "name": "a", "device": 4294967296, "time_us": 1}]})"),
            "annotation of a device that cannot be") == 1);
}

TEST_CASE("every damaged JSON file of the test data is refused with its name", "[unit][traces][json]") {
    for (const std::string name :
        {"truncated", "nan", "key_twice", "huge_number", "overflow", "negative_size", "nesting", "two_documents"}) {
        INFO(name);
        const std::string path = source_dir() + "/tests/data/bad/" + name + ".json";
        CHECK(contains(error_of([&] { read_recording(path); }), path + ": "));
    }
}
