#include "lib/report/baseline_file.hpp"

#include <algorithm>
#include <regex>

#include "lib/core/error.hpp"
#include "lib/report/json_reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

Baseline example() {
    BaselineEntry entry;
    entry.trace = "runs/\"night\".pickle";
    entry.sha256 = std::string(64, 'a');
    entry.gpu = 1;
    entry.policy = "caching:roundup_power2_divisions=[256:1,512:2]";
    entry.capacity = "9.79GiB";
    entry.tolerances = {{"num_ooms", "2"}};
    entry.figures.metrics = {{"reserved_bytes.all.peak", std::int64_t{123456789012}}, {"num_ooms", std::int64_t{1}},
        {"utilization.at_peak", 1.0 / 3}, {"utilization.peaks", 1.0}};
    entry.figures.ooms = {{17, 512, "compaction"}};
    entry.figures.oom_count = 1;
    entry.figures.recorded_ooms = {{9, 1024, true}};
    entry.figures.courses = {{"num_ooms", 1, {{17, 1}}}, {"reserved_bytes.all.peak", 200, {{0, 5}, {9, 123456789012}}}};
    BaselineEntry other = entry;
    other.capacity = "";
    other.gpu.reset();
    return {{{"reserved_bytes.all.peak", "1%"}}, {entry, other}};
}

std::string written() { return write_baseline(example()); }

// The complaint about a file with this content.
std::string complaint(const std::string& text) {
    TempFolder folder;
    write_file(folder / "base.json", text);
    try {
        read_baseline(folder / "base.json");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::input);
        CHECK_FALSE(error.hint().empty());
        const std::string message = error.what();
        CHECK(message.starts_with(folder / "base.json: "));
        return message.substr((folder / "base.json: ").size());
    }
    return "none";
}

std::string with(const std::string& part, const std::string& instead) {
    std::string text = written();
    const std::size_t at = text.find(part);
    REQUIRE(at != std::string::npos);
    return text.replace(at, part.size(), instead);
}

}  // namespace

TEST_CASE("a baseline is read as it was written, and written the same again", "[unit][baseline]") {
    TempFolder folder;
    write_file(folder / "base.json", written());
    const Baseline again = read_baseline(folder / "base.json");
    REQUIRE(again.entries.size() == 2);
    CHECK(again.tolerances == example().tolerances);
    const BaselineEntry& entry = again.entries[0];
    CHECK(entry.trace == "runs/\"night\".pickle");
    CHECK(entry.gpu == 1);
    CHECK(entry.policy == "caching:roundup_power2_divisions=[256:1,512:2]");
    CHECK(entry.capacity == "9.79GiB");
    CHECK(entry.figures.courses[1].thinned());
    CHECK(compare_figures(example().entries[0].figures, entry.figures).empty());
    CHECK(write_baseline(again) == written());
}

TEST_CASE("a baseline of version 1 keeps its meaning: PyTorch's native policies took the capacity as a memory limit",
    "[unit][baseline]") {
    TempFolder folder;
    std::string text = with("\"2.0.0\"", "\"1.0.0\"");
    write_file(folder / "base.json", text);
    const BaselineEntry native = read_baseline(folder / "base.json").entries[0];
    CHECK(native.capacity.empty());
    CHECK(native.memory_limit == "9.79GiB");
    write_file(folder / "base.json", text.replace(text.find("caching:"), 7, "best-fit"));
    const BaselineEntry other = read_baseline(folder / "base.json").entries[0];
    CHECK(other.capacity == "9.79GiB");
    CHECK(other.memory_limit.empty());
}

TEST_CASE("a memory limit is kept as it was written, and a share needs a capacity", "[unit][baseline]") {
    Baseline baseline = example();
    baseline.entries[0].memory_limit = "80%";
    TempFolder folder;
    write_file(folder / "base.json", write_baseline(baseline));
    CHECK(read_baseline(folder / "base.json").entries[0].memory_limit == "80%");
    baseline.entries[0].capacity.clear();
    CHECK(complaint(write_baseline(baseline)).find("entries[0].memory_limit: ") == 0);
}

TEST_CASE("a metric has a line of its own", "[unit][baseline]") {
    const std::string text = written();
    CHECK(text.find("\n    \"reserved_bytes.all.peak\": 123456789012,\n") != std::string::npos);
    CHECK(text.find("\n    \"utilization.at_peak\": 0.333333333333,\n") != std::string::npos);
    CHECK(text.find("\n    {\"op\":17,\"requested_bytes\":512,\"cause\":\"compaction\"}\n") != std::string::npos);
}

TEST_CASE("what is no baseline is refused with the place", "[unit][baseline]") {
    CHECK(complaint(written()) == "none");
    CHECK(complaint("{") == "line 1, column 2: the document ends too early");
    CHECK(
        complaint(written().substr(0, written().size() / 2)).find("the document ends too early") != std::string::npos);
    CHECK(complaint("{\n \"schema\": nonsense}") == "line 2, column 13: this is not JSON");
    CHECK(complaint("[]").find("expected an object, found array") != std::string::npos);
    CHECK(complaint("{}") == "'schema' is missing");
    CHECK(complaint(with("fragsim.baseline", "fragsim.result")).find("schema: ") == 0);
    CHECK(complaint(with("\"2.0.0\"", "\"3.0.0\"")) == "schema.version: version 3.0.0 is not known here, 1 and 2 are");
    CHECK(complaint(with("\"2.0.0\"", "1")) == "schema.version: expected a string, found number");
}

TEST_CASE("a value of the wrong kind is refused with its place", "[unit][baseline]") {
    CHECK(complaint(with("123456789012,", "\"much\",")) ==
          "entries[0].metrics.reserved_bytes.all.peak: expected an integer, found string");
    CHECK(complaint(with("123456789012,", "1.5,")).find("expected an integer") != std::string::npos);
    CHECK(complaint(with("123456789012,", "1e999,")) != "none");
    CHECK(complaint(with("123456789012,", "99999999999999999999,")) != "none");
    CHECK(
        complaint(with("0.333333333333", "null")).find("utilization.at_peak: expected a number") != std::string::npos);
    CHECK(complaint(with("\"served\":true", "\"served\":1")).find("recorded_ooms[0].served: expected true or false") !=
          std::string::npos);
    CHECK(complaint(with("\"gpu\": 1", "\"gpu\": -1")).find("entries[0].gpu") == 0);
    CHECK(complaint(with("\"gpu\": 1", "\"gpu\": 4294967295")).find("entries[0].gpu: expected an integer of") == 0);
    CHECK(complaint(with("\"op\":17", "\"op\":4294967296")).find("entries[0].ooms[0].op: expected an integer") == 0);
    CHECK(complaint(with("9.79GiB", "9.79G")).find("entries[0].capacity: '9.79G' is not a size") == 0);
    CHECK(complaint(with("[[0,5],[9,", "[[9,5],[9,")).find("have to rise") != std::string::npos);
    CHECK(complaint(with("[[0,5],[9,", "[[0],[9,")).find("expected an op and a value") != std::string::npos);
}

TEST_CASE("unknown keys, unknown metrics in tolerances and missing keys are refused", "[unit][baseline]") {
    CHECK(complaint(with("\"capacity\"", "\"capacty\"")).find("did you mean 'capacity'?") != std::string::npos);
    CHECK(complaint(with("\"tolerances\": {\n  \"reserved_bytes.all.peak\"",
                        "\"tolerances\": {\n  \"reserved_bytes.all.paek\""))
              .find("did you mean 'reserved_bytes.all.peak'?") != std::string::npos);
    CHECK(complaint(with("\"1%\"", "\"few\"")).find("tolerances.reserved_bytes.all.peak: ") == 0);
    CHECK(complaint(std::regex_replace(written(), std::regex("\"sha256\": \"a+\","), "")) ==
          "entries[0]: 'sha256' is missing");
}

TEST_CASE("entries and keys that are there twice are refused, and so is a baseline of nothing", "[unit][baseline]") {
    Baseline twice = example();
    twice.entries[1] = twice.entries[0];
    CHECK(complaint(write_baseline(twice)) == "entries[1]: the same run as entries[0]");
    twice.entries[1].capacity = "9.790GiB";
    CHECK(complaint(write_baseline(twice)) == "entries[1]: the same run as entries[0]");
    CHECK(complaint(with("\"num_ooms\": 1,", "\"num_ooms\": 1, \"num_ooms\": 2,")) ==
          "entries[0].metrics.num_ooms is there twice");
    CHECK(complaint(write_baseline({})) == "entries: nothing to check");
}

TEST_CASE("fragsim's documents are told from PyTorch's by their schema", "[unit][baseline]") {
    CHECK(schema_name(written()) == "fragsim.baseline");
    CHECK(schema_name("{\"argv\": [], \"schema\": {\"version\": \"1\", \"name\": \"fragsim.result\"}}") ==
          "fragsim.result");
    CHECK(schema_name("{\"schema\": {\"name\": \"fragsim.result\"}, \"resul") == "fragsim.result");
    CHECK(schema_name("{\"results\": [{\"schema\": {\"name\": \"x\"}}]}") == "");
    CHECK(begins_like_ours(written()));
    CHECK(begins_like_ours("{\"argv\": [], \"sch"));
    CHECK_FALSE(begins_like_ours("{\"segments\": [], \"schema\": {\"name\": \"fragsim.result\"}}"));
    CHECK_FALSE(begins_like_ours("[\"schema\"]"));
    CHECK(schema_name("{\"schema\": 1}") == "");
    CHECK(schema_name("[1]") == "");
    CHECK(schema_name("") == "");
}
