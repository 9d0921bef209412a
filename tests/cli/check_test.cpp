// fragsim check as a CI job meets it: what is green, what is red, what cannot be compared.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

using namespace fragsim::test;
using nlohmann::json;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// A folder with a baseline of two small recordings under two policies, with and without a capacity.
class Guarded {
public:
    Guarded() {
        for (const char* name : {"streams.default", "oom.default"})
            std::filesystem::copy_file(sample(name), folder_ / (std::string(name) + ".pickle.gz"));
        const Ended ended = run({"--update", "streams.default.pickle.gz", "oom.default.pickle.gz", "--policy",
            "caching", "--policy", "split-capped:max_split_size_mb=128", "--capacity", "none", "--capacity", "5.5GiB"});
        INFO(ended.err);
        REQUIRE(ended.status == 0);
    }

    Ended run(const std::vector<std::string>& more, const std::string& baseline = "base.json") const {
        std::vector<std::string> arguments{"check", "--baseline", baseline};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return fragsim::test::fragsim(arguments, {folder_.path(), "/dev/null", {}, false, ""});
    }
    std::string baseline() const { return read_file(folder_ / "base.json"); }
    // The baseline in which `part` is replaced wherever it is.
    void edit(const std::string& part, const std::string& instead, const std::string& to = "base.json") const {
        std::string text = baseline();
        REQUIRE(contains(text, part));
        for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += instead.size())
            text.replace(at, part.size(), instead);
        write_file(folder_ / to, text);
    }
    const TempFolder& folder() const { return folder_; }

private:
    TempFolder folder_;
};

// Peak reserved bytes after each op, from --timeline.
std::vector<std::int64_t> peaks(const TempFolder& folder, const std::string& trace, const std::string& policy) {
    const Ended ended =
        fragsim::test::fragsim({"replay", trace, "--policy", policy, "--timeline", "ops.csv", "-q", "-f"},
            {folder.path(), "/dev/null", {}, false, ""});
    REQUIRE(ended.status == 0);
    std::istringstream lines(read_file(folder / "ops.csv"));
    std::string line;
    std::getline(lines, line);
    std::vector<std::int64_t> peaks;
    std::int64_t peak = 0;
    while (std::getline(lines, line))
        peaks.push_back(peak = std::max<std::int64_t>(peak, std::stoll(split(line, ',')[5])));
    return peaks;
}

json difference(const json& run, const std::string& metric) {
    for (const json& difference : run["differences"])
        if (difference["metric"] == metric) return difference;
    FAIL("no difference of " << metric);
    return {};
}

void check_refused(const Ended& ended, const std::vector<std::string>& parts) {
    INFO(ended.err);
    CHECK(ended.status == 3);
    for (const std::string& part : parts) CHECK(contains(ended.err, part));
    CHECK(contains(ended.err, "hint: "));
}

}  // namespace

TEST_CASE("a baseline of today is green, and says so", "[cli][check]") {
    const Guarded guarded;
    const Ended ended = guarded.run({});
    CHECK(ended.status == 0);
    CHECK(ended.out == "base.json: 8 runs: all as in the baseline\n");
    CHECK(ended.err == "");
    CHECK(guarded.run({"--times"}).status == 0);
}

TEST_CASE("a planted regression is red from the op on that the timelines show", "[cli][check]") {
    const Guarded guarded;
    std::filesystem::copy_file(sample("gpt2_varlen.default"), guarded.folder() / "gpt2_varlen.default.pickle.gz");
    for (const std::string name : {"streams.default", "oom.default", "gpt2_varlen.default"}) {
        INFO(name);
        const std::string trace = name + ".pickle.gz";
        const std::string good = "split-capped:max_split_size_mb=128", bad = "split-capped:max_split_size_mb=24";
        REQUIRE(guarded.run({"--update", trace, "--policy", good}, "good.json").status == 0);
        std::string text = read_file(guarded.folder() / "good.json");
        text.replace(text.find(good), good.size(), bad);
        write_file(guarded.folder() / "worse.json", text);

        const Ended ended = guarded.run({"--json"}, "worse.json");
        REQUIRE(ended.status == 1);
        const json run = json::parse(ended.out)["runs"][0];
        CHECK(run["verdict"] == "worse");
        const json found = difference(run, "reserved_bytes.all.peak");

        const auto before = peaks(guarded.folder(), trace, good), now = peaks(guarded.folder(), trace, bad);
        REQUIRE(before.size() == now.size());
        std::size_t first = 0;
        while (first < now.size() && now[first] <= before[first]) ++first;
        REQUIRE(first < now.size());
        CHECK(found["baseline"] == before.back());
        CHECK(found["candidate"] == now.back());
        CHECK(found["began"]["first_op"] <= first);
        CHECK(found["began"]["last_op"] >= first);
        // Only the large one's course is thinned.
        CHECK((found["began"]["first_op"] == found["began"]["last_op"]) == (name != "gpt2_varlen.default"));
        CHECK(guarded.run({}, "good.json").status == 0);
        std::filesystem::remove(guarded.folder() / "good.json");
    }
}

TEST_CASE("the table of what got worse has trace, policy, metric, both figures, change and op", "[cli][check]") {
    const Guarded guarded;
    guarded.edit("\"reserved_bytes.all.peak\": 297795584", "\"reserved_bytes.all.peak\": 295698432");
    const Ended ended = guarded.run({"streams.default.pickle.gz"});
    CHECK(ended.status == 1);
    CHECK(contains(ended.out, "4 runs: 4 worse"));
    CHECK(contains(ended.out,
        "streams.default.pickle.gz  caching                                 none  reserved_bytes.all.peak   282 MiB  "
        "284 MiB  "
        "+0.7 %  worse"));
    CHECK(contains(ended.out, "if this is meant: fragsim check --baseline base.json --update"));
}

TEST_CASE("tolerances come from the file, from an entry and from the command line", "[cli][check]") {
    const Guarded guarded;
    const std::string was = "\"reserved_bytes.all.peak\": 297795584", is = "\"reserved_bytes.all.peak\": 295698432";
    guarded.edit(was, is);
    CHECK(guarded.run({}).status == 1);
    CHECK(guarded.run({"--tolerance", "reserved_bytes.all.peak=2MiB"}).status == 0);
    CHECK(guarded.run({"--tolerance", "reserved_bytes.all.peak=0.5%"}).status == 1);
    CHECK(guarded.run({"--tolerance", "reserved_bytes.all.peak=1%"}).status == 0);
    guarded.edit("\n \"tolerances\": {}", "\n \"tolerances\": {\"reserved_bytes.all.peak\": \"1%\"}");
    CHECK(guarded.run({}).status == 0);
    guarded.edit("\n   \"tolerances\": {}", "\n   \"tolerances\": {\"reserved_bytes.all.peak\": \"0\"}");
    CHECK(guarded.run({}).status == 1);
    const Ended unknown = guarded.run({"--tolerance", "reserved_bytes.all.paek=1%"});
    CHECK(unknown.status == 2);
    CHECK(contains(unknown.err, "did you mean 'reserved_bytes.all.peak'?"));
}

TEST_CASE("what got better is green, is told, and --update keeps it", "[cli][check]") {
    const Guarded guarded;
    const std::string before = guarded.baseline();
    guarded.edit("\"reserved_bytes.all.peak\": 297795584", "\"reserved_bytes.all.peak\": 299892736");
    const Ended ended = guarded.run({});
    CHECK(ended.status == 0);
    CHECK(contains(ended.out, "8 runs: 4 better, 4 the same"));
    CHECK(contains(ended.out, "to keep what got better: fragsim check --baseline base.json --update"));
    const Ended updated = guarded.run({"--update"});
    CHECK(updated.status == 0);
    CHECK(contains(updated.out, "base.json, updated: 8 runs: 4 better, 4 the same"));
    CHECK(contains(updated.err, "wrote base.json"));
    CHECK(guarded.baseline() == before);
}

TEST_CASE("a changed load is red: the figures are then of another program", "[cli][check]") {
    const Guarded guarded;
    guarded.edit("\"load_bytes\": 191894016", "\"load_bytes\": 191894528");
    const Ended ended = guarded.run({});
    CHECK(ended.status == 1);
    CHECK(contains(ended.out, "changed"));
}

TEST_CASE("new failures and recorded ones that are no longer served are red", "[cli][check]") {
    const Guarded guarded;
    const json base = json::parse(guarded.baseline());
    std::string text = guarded.baseline();
    // Every failure of the baseline moves by an op: as many as before, elsewhere.
    const std::size_t oom = text.find("{\"op\":", text.find("\"ooms\": [\n"));
    REQUIRE(oom != std::string::npos);
    text.insert(oom + 6, "1");
    write_file(guarded.folder() / "moved.json", text);
    const Ended moved = guarded.run({}, "moved.json");
    CHECK(moved.status == 1);
    CHECK(contains(moved.out, "ooms.new"));
    guarded.edit("\"served\":false", "\"served\":true", "served.json");
    const Ended refused = guarded.run({}, "served.json");
    CHECK(refused.status == 1);
    CHECK(contains(refused.out, "recorded_ooms.newly_refused"));
}

TEST_CASE("everything that is missing on either side is told at once, with status 3", "[cli][check]") {
    const Guarded guarded;
    std::string text = guarded.baseline();
    text.replace(text.find("streams.default"), 15, "streems.default");
    const std::size_t capped = text.find("\"split-capped:max");
    text.replace(capped, 14, "\"split-caped:m");
    text.replace(text.find("\"num_misses\""), 12, "\"num_mises\"");
    write_file(guarded.folder() / "broken.json", text);
    const Ended ended = guarded.run({"--report", "junit=out.xml"}, "broken.json");
    check_refused(ended, {"streems.default.pickle.gz: cannot open", "did you mean 'split-capped'?"});
    CHECK(contains(ended.out, "not compared:"));
    CHECK(contains(read_file(guarded.folder() / "out.xml"), "errors=\"2\""));
    guarded.edit("\"num_misses\"", "\"num_mises\"", "metric.json");
    check_refused(guarded.run({}, "metric.json"),
        {"metric num_mises is no longer there", "metric num_misses is not in the baseline"});
    check_refused(guarded.run({"run.pickle", "other.pickle"}),
        {"run.pickle: not listed in base.json", "other.pickle: not listed in base.json"});
}

TEST_CASE("a trace with other content is told, and --update takes it", "[cli][check]") {
    const Guarded guarded;
    std::filesystem::copy_file(sample("streams.expandable"), guarded.folder() / "streams.default.pickle.gz",
        std::filesystem::copy_options::overwrite_existing);
    check_refused(guarded.run({}), {"streams.default.pickle.gz, caching: the trace is another one: its sha256 is "});
    const Ended updated = guarded.run({"--update"});
    CHECK(updated.status == 0);
    CHECK(contains(updated.err, "streams.default.pickle.gz: the trace is another one than before"));
    CHECK(guarded.run({}).status == 0);
}

TEST_CASE("a baseline that cannot be read is status 3, and --update leaves it alone", "[cli][check]") {
    const Guarded guarded;
    check_refused(guarded.run({}, "none.json"), {"none.json: no such file"});
    write_file(guarded.folder() / "cut.json", guarded.baseline().substr(0, 4000));
    for (const std::vector<std::string>& more :
        std::vector<std::vector<std::string>>{{}, {"--update"}, {"--update", "streams.default.pickle.gz"}}) {
        check_refused(guarded.run(more, "cut.json"), {"cut.json: line ", "ends too early"});
        CHECK(read_file(guarded.folder() / "cut.json") == guarded.baseline().substr(0, 4000));
    }
    CHECK(guarded.folder().files().size() == 4);  // nothing half-written
}

TEST_CASE("--update adds, refreshes and keeps, and writes nothing when something is wrong", "[cli][check]") {
    const Guarded guarded;
    const std::string before = guarded.baseline();
    const Ended again =
        guarded.run({"--update", "--capacity", "none", "streams.default.pickle.gz", "--policy", "caching"});
    CHECK(again.status == 0);
    CHECK(contains(again.err, "0 added, 1 refreshed, 7 left as they were"));
    CHECK(guarded.baseline() == before);
    const Ended more =
        guarded.run({"--update", "streams.default.pickle.gz", "--alloc-conf", "expandable_segments:True"});
    CHECK(contains(more.err, "1 added, 0 refreshed, 8 left as they were"));
    CHECK(contains(more.out, "1 run: 1 new"));
    CHECK(guarded.run({}).out == "base.json: 9 runs: all as in the baseline\n");

    const std::string nine = guarded.baseline();
    std::filesystem::remove(guarded.folder() / "oom.default.pickle.gz");
    check_refused(guarded.run({"--update"}), {"oom.default.pickle.gz: cannot open"});
    CHECK(guarded.baseline() == nine);
}

TEST_CASE("options that make no sense together are wrong usage", "[cli][check]") {
    const Guarded guarded;
    CHECK(guarded.run({"--policy", "caching"}).status == 2);
    CHECK(guarded.run({"--update", "--policy", "caching"}).status == 2);
    CHECK(guarded.run({"--update", "-"}).status == 2);
    CHECK(guarded.run({"--update", "streams.default.pickle.gz", "--capacity", "5G"}).status == 2);
    CHECK(guarded.run({"--update", "streams.default.pickle.gz", "--policy", "cachin"}).status == 2);
    CHECK(guarded.run({"--report", "junit", "--report", "markdown"}).status == 2);
    CHECK(contains(guarded.run({"--report", "junt"}).err, "did you mean 'junit'?"));
    CHECK(fragsim::test::fragsim({"check"}).status == 2);
}

TEST_CASE("the same bytes come out at any --jobs, in reports and in the baseline", "[cli][check]") {
    const Guarded guarded;
    const std::string before = guarded.baseline();
    for (const char* jobs : {"1", "2", "7"}) {
        CHECK(guarded.run({"--update", "--jobs", jobs}).status == 0);
        CHECK(guarded.baseline() == before);
    }
    guarded.edit("max_split_size_mb=128", "max_split_size_mb=24");
    for (const char* name : {"table", "json", "markdown", "github", "junit", "bencher"}) {
        INFO(name);
        std::string one = guarded.run({"--jobs", "1", "--report", name}).out;
        std::string seven = guarded.run({"--jobs", "7", "--report", name}).out;
        if (std::string(name) == "json") {
            one.replace(one.find("\"1\""), 3, "");
            seven.replace(seven.find("\"7\""), 3, "");
        }
        CHECK_FALSE(one.empty());
        CHECK(one == seven);
    }
}

TEST_CASE("the project's own baseline is green", "[cli][check]") {
    const Ended ended = fragsim::test::fragsim({"check", "--baseline", "tests/baseline.json"});
    INFO(ended.out << ended.err << "\nif the change is meant: fragsim check --baseline tests/baseline.json --update");
    CHECK(ended.status == 0);
    CHECK(contains(ended.out, "all as in the baseline"));
}
