#include "tests/support/catch.hpp"
#include "tests/unit/traces_support.hpp"

using namespace fragsim;
using namespace fragsim::test;
using nlohmann::ordered_json;

namespace {

constexpr std::int64_t kBase = 0x7f0000000000;

ordered_json entry(const char* action, std::int64_t offset, std::int64_t size, std::int64_t stream = 0) {
    return {{"action", action}, {"addr", kBase + offset}, {"size", size}, {"stream", stream}, {"time_us", 1000}};
}
ordered_json block(std::int64_t size, const char* state, std::int64_t requested) {
    return {{"size", size}, {"requested_size", requested}, {"state", state}, {"frames", ordered_json::array()}};
}
ordered_json segment(std::int64_t offset, std::int64_t size, ordered_json blocks, int device = 0) {
    return {{"device", device}, {"address", kBase + offset}, {"total_size", size}, {"stream", 0},
        {"segment_type", size == 2 << 20 ? "small" : "large"}, {"segment_pool_id", {0, 0}}, {"is_expandable", false},
        {"blocks", std::move(blocks)}};
}
ordered_json snapshot(ordered_json segments, ordered_json histories) {
    return {{"segments", std::move(segments)}, {"device_traces", std::move(histories)}};
}
Recording read(const ordered_json& document) { return read_as("pytorch-snapshot", pickle(document)); }
std::string error_in(const ordered_json& document) {
    return error_of([&] { read(document); });
}
// One segment of 2 MiB that a history allocates from; all of it free at the end.
Recording read_history(ordered_json entries) {
    entries.insert(entries.begin(), entry("segment_alloc", 0, 2 << 20));
    return read(snapshot({segment(0, 2 << 20, {block(2 << 20, "inactive", 0)})}, {std::move(entries)}));
}
std::int64_t count_of(const Recording& recording, std::string_view kind) {
    for (const Diagnostics::Entry& entry : recording.diagnostics.entries())
        if (entry.kind == kind) return entry.count;
    return 0;
}

}  // namespace

TEST_CASE("a free that completes at once is one event, any other is two", "[unit][traces][pytorch]") {
    const Recording recording = read_history({entry("alloc", 0, 500), entry("alloc", 512, 600),
        entry("free_requested", 0, 500), entry("free_completed", 0, 500), entry("free_requested", 512, 600),
        entry("alloc", 0, 10), entry("free_completed", 512, 600), entry("free", 0, 10)});
    REQUIRE(recording.traces.size() == 1);
    const Trace& trace = recording.traces[0];
    REQUIRE(trace.events.size() == 7);
    const std::vector<EventKind> expected{EventKind::alloc, EventKind::alloc, EventKind::free,
        EventKind::free_requested, EventKind::alloc, EventKind::free_completed, EventKind::free};
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(trace.events[i].kind() == expected[i]);
    CHECK(trace.ops == 6);
    CHECK(trace.buffers.size() == 3);
    CHECK(trace.buffers[1].requested == 600);
    CHECK(trace.buffers[1].recorded_address == kBase + 512);
    CHECK(trace.time_us.size() == 7);
    CHECK(trace.completeness == Completeness::complete);
    CHECK(trace.initial.segments.empty());
    CHECK(recording.diagnostics.empty());
}

TEST_CASE("streams are numbered by their raw handles, segments and events alike", "[unit][traces][pytorch]") {
    const Recording recording =
        read_history({entry("alloc", 0, 512, 0x9000), entry("alloc", 512, 512, -1), entry("alloc", 1024, 512, 0),
            entry("free", 0, 512, 0x9000), entry("free", 512, 512, -1), entry("free", 1024, 512, 0)});
    const Trace& trace = recording.traces[0];
    CHECK(trace.streams == std::vector<std::uint64_t>{0, 0x9000, ~std::uint64_t{0}});
    CHECK(trace.buffers[0].stream == 1);
    CHECK(trace.buffers[1].stream == 2);
    CHECK(trace.buffers[2].stream == 0);
    CHECK(trace.segment_events.at(0).stream == StreamId{0});
}

TEST_CASE("a device with neither history nor memory has no trace, one with memory alone has no events",
    "[unit][traces][pytorch]") {
    const Recording recording = read(
        snapshot({segment(0, 2 << 20, {block(512, "active_allocated", 300), block((2 << 20) - 512, "inactive", 0)}, 2)},
            {ordered_json::array(), ordered_json::array()}));
    REQUIRE(recording.traces.size() == 1);
    const Trace& trace = recording.traces[0];
    CHECK(trace.device == 2);
    CHECK(trace.completeness == Completeness::no_events);
    REQUIRE(trace.initial.blocks.size() == 2);
    CHECK(trace.initial.blocks[0].buffer == BufferId{0});
    CHECK(trace.buffers.at(0).requested == 300);
    REQUIRE(trace.final);
    CHECK(trace.final->blocks[0].buffer == BufferId{0});
}

TEST_CASE("a bare list of segments is a snapshot without history", "[unit][traces][pytorch]") {
    const Recording recording = read(ordered_json::array({segment(0, 2 << 20, {block(2 << 20, "inactive", 0)})}));
    REQUIRE(recording.traces.size() == 1);
    CHECK(recording.traces[0].completeness == Completeness::no_events);
}

TEST_CASE("blocks of 2.0: no addresses, the request in the history of users", "[unit][traces][pytorch]") {
    ordered_json old = {{"size", 1024}, {"state", "active_allocated"},
        {"history", {{{"addr", kBase}, {"real_size", 700}}, {{"addr", kBase}, {"real_size", 9}}}}};
    ordered_json rest = {{"size", (2 << 20) - 1024}, {"state", "inactive"}};
    ordered_json holder = {{"device", 0}, {"address", kBase}, {"total_size", 2 << 20}, {"stream", 0},
        {"segment_type", "small"}, {"blocks", {old, rest}}};
    const Recording recording = read({{"segments", {holder}},
        {"device_traces",
            {ordered_json::array({{{"action", "alloc"}, {"addr", kBase}, {"size", 700}, {"stream", 0}}})}}});
    const Trace& trace = recording.traces.at(0);
    CHECK(trace.time_us.empty());
    CHECK(trace.final->blocks.at(0).requested == 700);
    CHECK(trace.final->blocks.at(1).address == kBase + 1024);
    CHECK(trace.final->blocks.at(0).buffer == BufferId{0});
}

TEST_CASE("both spellings of a pending block are read", "[unit][traces][pytorch]") {
    const Recording recording =
        read(snapshot({segment(0, 2 << 20,
                          {block(512, "active_pending_free", 1), block(512, "active_awaiting_free", 1),
                              block((2 << 20) - 1024, "inactive", 0)})},
            ordered_json::array()));
    CHECK(recording.traces.at(0).final->blocks[0].state == BlockState::active_pending_free);
    CHECK(recording.traces.at(0).final->blocks[1].state == BlockState::active_pending_free);
}

TEST_CASE("settings are printed as the settings string spells them, annotations kept", "[unit][traces][pytorch]") {
    ordered_json document = snapshot(ordered_json::array(), ordered_json::array());
    document["allocator_settings"] = {{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128"}, {"max_split_size", -1},
        {"garbage_collection_threshold", 0.5}, {"expandable_segments", true},
        {"roundup_power2_divisions", {{"1", 4}, {"2", 0}}}};
    document["external_annotations"] = {{{"name", "step"}, {"stage", "END"}, {"device", 1}, {"time_us", 7}}};
    document["unheard_of"] = {{"x", {1, 2}}};
    const Recording recording = read(document);
    REQUIRE(recording.settings);
    CHECK(recording.settings->alloc_conf == "max_split_size_mb:128");
    const std::vector<std::pair<std::string, std::string>> expected{
        {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128"}, {"max_split_size", "-1"},
        {"garbage_collection_threshold", "0.5"}, {"expandable_segments", "true"},
        {"roundup_power2_divisions", "[1:4,2:0]"}};
    CHECK(recording.settings->values == expected);
    REQUIRE(recording.annotations.size() == 1);
    CHECK(recording.annotations[0].stage == Annotation::Stage::end);
    CHECK(recording.annotations[0].name == "step");
}

TEST_CASE("a recording of PyTorch for HIP is known by its settings' names or its C++ frames", "[unit][traces][pytorch]") {
    const auto recorded_by = [](const std::string& setting, const std::string& function, const std::string& file) {
        ordered_json allocation = entry("alloc", 0, 1);
        allocation["frames"] = {{{"name", function}, {"filename", file}, {"line", 3}}};
        ordered_json document = snapshot(ordered_json::array(), {{allocation}});
        document["allocator_settings"] = {{"PYTORCH_CUDA_ALLOC_CONF", ""}, {setting, false}};
        return read(document).hip;
    };
    CHECK_FALSE(recorded_by("release_lock_on_cudamalloc", "forward", "model.py"));
    CHECK(recorded_by("release_lock_on_hipmalloc", "forward", "model.py"));
    CHECK(recorded_by("expandable_segments", "c10::hip::HIPCachingAllocator::Native::DeviceCachingAllocator::malloc", "??"));
    CHECK(recorded_by("expandable_segments", "hipMalloc", "??"));
    CHECK(recorded_by("expandable_segments", "??", "/opt/rocm-6.2/lib/libamdhip64.so"));
    // Words that only contain the letters say nothing.
    CHECK_FALSE(recorded_by("expandable_segments", "hip_joint_membership", "/home/chip/relationship/hip.py"));
}

TEST_CASE("the settings string is read under each name of its variable", "[unit][traces][pytorch]") {
    for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
        ordered_json document = snapshot(ordered_json::array(), ordered_json::array());
        document["allocator_settings"] = {{name, "max_split_size_mb:128"}};
        CHECK(read(document).settings->alloc_conf == "max_split_size_mb:128");
    }
}

TEST_CASE("call stacks and frames are kept once each", "[unit][traces][pytorch]") {
    const ordered_json inner = {{"name", "f"}, {"filename", "a.py"}, {"line", 3}},
                       outer = {{"name", "main"}, {"filename", "a.py"}, {"line", 9}};
    ordered_json entries = {
        entry("alloc", 0, 1), entry("alloc", 512, 1), entry("alloc", 1024, 1), entry("alloc", 1536, 1)};
    entries[0]["frames"] = entries[2]["frames"] = {inner, outer};
    entries[1]["frames"] = ordered_json::array({outer});
    entries[3]["frames"] = ordered_json::array();
    const Trace trace = read_history(entries).traces.at(0);
    CHECK(trace.frames.size() == 2);
    CHECK(trace.stack_begin == std::vector<std::uint32_t>{0, 2, 3});
    CHECK(trace.buffers[0].stack == trace.buffers[2].stack);
    CHECK(trace.buffers[0].stack != trace.buffers[1].stack);
    CHECK_FALSE(trace.buffers[3].stack);
    CHECK(trace.frames[trace.stack_frames[0]].function == "f");
    CHECK(trace.frames[trace.stack_frames[2]].line == 9);
}

TEST_CASE("the pool of an allocation is the entry's, or that of the segment it lies in", "[unit][traces][pytorch]") {
    ordered_json own = segment(0, 2 << 20, {block(512, "active_allocated", 1), block((2 << 20) - 512, "inactive", 0)});
    own["segment_pool_id"] = {0, 7};
    ordered_json before = entry("alloc", 0, 1), said = entry("alloc", 4 << 20, 1);
    said["pool_id"] = {3, 0};
    const Recording recording =
        read(snapshot({own}, {{entry("segment_alloc", 0, 2 << 20), before, said, entry("free", 4 << 20, 1)}}));
    const Trace& trace = recording.traces.at(0);
    CHECK(trace.pools == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {0, 7}, {3, 0}});
    CHECK(trace.buffers[0].pool == 1);
    CHECK(trace.buffers[1].pool == 2);
}

TEST_CASE("out-of-memory entries are events of their own", "[unit][traces][pytorch]") {
    const Recording recording = read_history(
        {ordered_json{{"action", "oom"}, {"device_free", 123}, {"size", 2048}, {"stream", 0}, {"time_us", 5}},
            entry("snapshot", 0, 0)});
    const Trace& trace = recording.traces.at(0);
    REQUIRE(trace.ooms.size() == 1);
    CHECK(trace.ooms[0].requested == 2048);
    CHECK(trace.ooms[0].device_free == 123);
    CHECK(trace.ops == 0);
    CHECK(recording.diagnostics.empty());
}

TEST_CASE("what does not add up is counted with its place and leaves the rest alone", "[unit][traces][pytorch]") {
    const Recording recording =
        read_history({entry("alloc", 0, 8), entry("free", 0, 8), entry("free", 0, 8), entry("free_requested", 0, 8),
            entry("alloc", 512, 8), entry("free_requested", 512, 8), entry("free_requested", 512, 8),
            entry("free_completed", 512, 8), entry("alloc", 1024, 0), entry("free", 1024, 0), entry("dance", 0, 0),
            entry("alloc", 2048, 8), entry("alloc", 2048, 9), entry("free_completed", 2048, 9)});
    const Trace& trace = recording.traces.at(0);
    CHECK(count_of(recording, "double free") == 3);
    CHECK(count_of(recording, "allocation of no bytes") == 1);
    CHECK(count_of(recording, "entry with an unknown action") == 1);
    CHECK(count_of(recording, "allocation at an address in use") == 1);
    CHECK(count_of(recording, "free_completed without free_requested") == 1);
    CHECK(recording.diagnostics.entries().at(0).first_position == "device 0, entry 3");
    CHECK(trace.ops == 8);
}

TEST_CASE("a picture that contradicts itself or the history is counted, never trusted", "[unit][traces][pytorch]") {
    CHECK(count_of(read(snapshot({segment(0, 2 << 20, {block(512, "inactive", 0)})}, ordered_json::array())),
              "blocks do not tile their segment") == 1);
    CHECK(count_of(read(snapshot({segment(0, 2 << 20, {block(2 << 20, "odd", 0)})}, ordered_json::array())),
              "block of unknown state") == 1);
    CHECK(count_of(read(snapshot({segment(0, 2 << 20, {block(2 << 20, "inactive", 0)}),
                                     segment(1 << 20, 2 << 20, {block(2 << 20, "inactive", 0)})},
                       ordered_json::array())),
              "segments overlap") == 1);
    CHECK(count_of(read_history({entry("alloc", 0, 8)}), "allocation that the picture at the end does not show") == 1);
    CHECK(count_of(read(snapshot({segment(0, 2 << 20, {block(2 << 20, "active_allocated", 8)})},
                       {{entry("segment_alloc", 0, 2 << 20), entry("alloc", 0, 8), entry("free", 0, 8)}})),
              "block in use at the end that was freed") == 1);
}

TEST_CASE("values of the wrong type or out of range are errors with their place", "[unit][traces][pytorch]") {
    const auto with = [](const char* key, ordered_json value) {
        ordered_json changed = entry("alloc", 0, 8);
        changed[key] = std::move(value);
        return snapshot(ordered_json::array(), {{changed}});
    };
    CHECK(contains(error_in(with("size", -5)), "size cannot be -5"));
    CHECK(contains(error_in(with("size", std::int64_t{1} << 62)), "size cannot be 4611686018427387904"));
    CHECK(contains(error_in(with("size", ~std::uint64_t{0})), "size is an integer of more than 63 bits"));
    CHECK(contains(error_in(with("size", "big")), "size is a string, not an integer"));
    CHECK(contains(error_in(with("size", "big")), "run: offset "));
    CHECK(contains(error_in(with("addr", -1)), "addr cannot be -1"));
    CHECK(contains(error_in(with("action", 4)), "action is an integer, not a string"));
    CHECK(contains(error_in(with("pool_id", "x")), "memory pool is a string"));
    ordered_json missing = entry("alloc", 0, 8);
    missing.erase("addr");
    CHECK(contains(error_in(snapshot(ordered_json::array(), {{missing}})), "run: device 0, entry 0: no addr"));
}

TEST_CASE("what the memory does not depend on never keeps a file from being read", "[unit][traces][pytorch]") {
    const auto read_in_both = [](const ordered_json& document) {
        std::vector<Recording> recordings;
        recordings.push_back(read_as("pytorch-snapshot", pickle(document)));
        recordings.push_back(read_as("pytorch-json", document.dump()));
        return recordings;
    };
    const auto with = [](const char* key, ordered_json value) {
        ordered_json changed = entry("alloc", 0, 8);
        changed[key] = std::move(value);
        return snapshot(ordered_json::array(), {{changed}});
    };
    const auto frame = [](ordered_json name, ordered_json file, ordered_json line) {
        return ordered_json::array(
            {{{"name", std::move(name)}, {"filename", std::move(file)}, {"line", std::move(line)}}});
    };
    for (const ordered_json& line : {ordered_json(~std::uint64_t{0}), ordered_json(-1), ordered_json(nullptr),
             ordered_json("x"), ordered_json(std::int64_t{1} << 40)})
        for (const Recording& recording : read_in_both(with("frames", frame("f", "a.py", line)))) {
            INFO(line.dump() << " in " << recording.format);
            CHECK(recording.traces.at(0).frames.at(0).line == 0);
            CHECK(recording.traces.at(0).frames.at(0).function == "f");
            CHECK(recording.diagnostics.empty());
        }
    for (const Recording& recording : read_in_both(with("frames", frame(nullptr, nullptr, 3.0)))) {
        CHECK(recording.traces.at(0).frames.at(0).function == "");
        CHECK(recording.traces.at(0).frames.at(0).file == "");
        CHECK(recording.traces.at(0).frames.at(0).line == 3);
    }
    for (const Recording& recording : read_in_both(with("frames", {{{"name", "g"}}})))
        CHECK(recording.traces.at(0).frames.at(0).function == "g");
    for (const Recording& recording : read_in_both(with("time_us", 1000.75)))
        CHECK(recording.traces.at(0).time_us.at(0) == 1000);
    for (const ordered_json& lost :
        {with("time_us", nullptr), with("time_us", "noon"), with("frames", 4), with("frames", {4})})
        for (const Recording& recording : read_in_both(lost)) {
            CHECK(recording.traces.at(0).ops == 1);
            CHECK(recording.diagnostics.entries().size() == 1);
        }
    for (const char* key : {"frames", "pool_id", "compile_context", "user_metadata"})
        for (const Recording& recording : read_in_both(with(key, nullptr))) {
            CHECK(recording.traces.at(0).ops == 1);
            CHECK(recording.diagnostics.empty());
        }
    ordered_json marked = with("time_us", 5);
    marked["external_annotations"] = {{{"stage", "START"}, {"name", nullptr}, {"device", 0}, {"time_us", 7.5}}, 4};
    marked["allocator_settings"] = nullptr;
    for (const Recording& recording : read_in_both(marked)) {
        CHECK(recording.annotations.at(0).time_us == 7);
        CHECK(recording.diagnostics.entries().size() == 1);
    }
}

TEST_CASE("a pickle that is no snapshot is refused with what it is", "[unit][traces][pytorch]") {
    CHECK(contains(error_in(5), "holds an integer, not a memory snapshot"));
    CHECK(contains(error_in("text"), "holds a string"));
    CHECK(contains(error_in(ordered_json::array({"a", "b"})), "holds a list of something else"));
    CHECK(contains(error_in(ordered_json::object()), "holds an empty dict"));
    CHECK(contains(error_in({{"loss", 1}}), "a dict without segments and device_traces"));
    CHECK(contains(error_in({{"segments", 5}}), "segments is an integer, not a list"));
    CHECK(contains(error_in({{"segments", {5}}}), "a segment is an integer"));
    CHECK(contains(error_in({{"device_traces", {5}}}), "an entry of a history is an integer, not part of a list"));
    CHECK(contains(error_in({{"device_traces", {{5}}}}), "an entry of a history is an integer"));
}

TEST_CASE("structures that hold themselves or are shared without end are errors", "[unit][traces][pytorch]") {
    using namespace std::string_literals;
    const auto error = [](const std::string& bytes) { return error_of([&] { read_as("pytorch-snapshot", bytes); }); };
    CHECK(contains(error("\x80\x04]\x94h\0"
                         "a."s),
        "a list of something else"));
    CHECK(contains(error("\x80\x04}(\x8c\x0d"
                         "device_traces]\x94h\0"
                         "au."s),
        "an entry of a history is a list"));
    // A call stack that grows after an entry used it.
    CHECK(contains(error("\x80\x04}(\x8c\x06"
                         "action\x8c\x05"
                         "alloc\x8c\x06"
                         "frames]\x94uh\0K\x01"
                         "a."s),
        "a list grows after it was used"));
    // One history for two devices.
    const std::string history = pickle(ordered_json::array({entry("alloc", 0, 8)}));
    CHECK(contains(error("\x80\x04}(\x8c\x0d"
                         "device_traces](" +
                         history.substr(2, 1) + "\x94" + history.substr(3, history.size() - 4) + "h\0eu."s),
        "devices 0 and 1 share one history"));
}
