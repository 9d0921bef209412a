// Sweeps through the real program: the same as single replays, at any number of threads, after any number of kills.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

namespace {

using namespace fragsim::test;
using nlohmann::json;
using Words = std::vector<std::string>;

const std::string kStreams = "traces/samples/streams.default.pickle.gz";
const std::string kOom = "traces/samples/oom.default.pickle.gz";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// 24 runs over two traces: parameters, capacities, and out of memory in some.
const Words kGrid{"sweep", kStreams, kOom, "--axis", "caching.max_split_size_mb=[32:128:*2]", "--axis",
    "capacity=[5GiB,7GiB,none]", "--policy", "expandable"};
constexpr std::size_t kRuns = 2 * (3 + 1) * 3;

std::string swept(const Words& words) {
    const Ended ended = fragsim::test::fragsim(words);
    INFO(ended.err);
    REQUIRE(ended.status == 0);
    return ended.out;
}

std::string into_file(const TempFolder& folder, const std::string& name, const Words& words) {
    CHECK(swept(with(words, {"-o", folder / name})) == "");
    return read_file(folder / name);
}

Words complete_lines(const std::string& text) {
    Words lines = split(text.substr(0, text.rfind('\n') + 1), '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
}

void check_refused(const Words& words, const std::string& message, const std::string& hint) {
    const Ended ended = fragsim::test::fragsim(words);
    INFO(ended.err);
    CHECK(ended.status == 2);
    CHECK(ended.out == "");
    CHECK(contains(ended.err, message));
    CHECK(contains(ended.err, hint));
}

}  // namespace

TEST_CASE("every line of a sweep is what a single replay says, in the order of the grid", "[cli][sweep]") {
    const Words lines = complete_lines(swept(kGrid));
    REQUIRE(lines.size() == kRuns);
    std::size_t at = 0;
    std::int64_t ooms = 0;
    for (const std::string& trace : {kStreams, kOom})
        for (const char* policy : {"expandable", "caching:max_split_size_mb=32", "caching:max_split_size_mb=64",
                 "caching:max_split_size_mb=128"})
            for (const char* capacity : {"5GiB", "7GiB", "none"}) {
                INFO(trace << ' ' << policy << ' ' << capacity);
                Words single{"replay", trace, "--policy", policy, "--json", "-q"};
                if (capacity != std::string("none")) single = with(single, {"--capacity", capacity});
                const json whole = json::parse(swept(single));
                json expected = whole["results"][0];
                expected.erase("run");
                json line = json::parse(lines[at++]);
                CHECK(line["schema"]["name"] == "fragsim.sweep");
                CHECK(line["trace"]["path"] == trace);
                CHECK(line["trace"]["sha256"].get<std::string>().size() == 64);
                CHECK(line["trace"]["ops"] == whole["trace"]["ops"]);
                CHECK(line["options"] == json{{"on_oom", "skip"}, {"frees", "requested"}});
                for (const char* head : {"schema", "tool", "trace", "options"}) line.erase(head);
                CHECK(line == expected);
                ooms += line["metrics"]["num_ooms"].get<std::int64_t>();
            }
    CHECK(ooms > 0);
}

TEST_CASE("a sweep's bytes do not depend on the number of threads or on where they go", "[cli][sweep]") {
    TempFolder folder;
    const std::string on_stdout = swept(with(kGrid, {"--jobs", "1"}));
    CHECK(swept(with(kGrid, {"--jobs", "2"})) == on_stdout);
    CHECK(swept(with(kGrid, {"--jobs", "7"})) == on_stdout);
    CHECK(into_file(folder, "one", with(kGrid, {"--jobs", "1"})) == on_stdout);
    CHECK(into_file(folder, "four", with(kGrid, {"--jobs", "4"})) == on_stdout);
    CHECK(folder.files() == Words{"four", "one"});
}

TEST_CASE("a sweep killed again and again ends with the bytes of one that was not, and runs nothing twice",
    "[cli][sweep][kill]") {
    TempFolder folder;
    const std::string path = folder / "runs.jsonl";
    const std::string expected = swept(kGrid);
    std::mt19937 random(1);
    std::size_t killed = 0;
    for (Words before; killed < 200;) {
        Words command = with(with({FRAGSIM_PROGRAM}, kGrid), {"-o", path, "--jobs", std::to_string(1 + killed % 3)});
        Running running(command, {});
        // Once this start has added a few bytes to a few lines.
        const std::size_t from = std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0;
        const std::size_t until = from + random() % 40'000;
        for (int wait = 0; wait < 4000 && (!std::filesystem::exists(path) || std::filesystem::file_size(path) < until);
             ++wait)
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        running.signal(SIGKILL);
        const Ended ended = running.wait();
        if (ended.status == 0) break;
        ++killed;
        REQUIRE(ended.status == 128 + SIGKILL);
        if (!std::filesystem::exists(path)) continue;
        // What was there is there, in its place, and nothing is there twice.
        const Words after = complete_lines(read_file(path));
        if (after.size() < kRuns || !std::equal(after.begin(), after.end(), split(expected, '\n').begin())) {
            REQUIRE(after.size() >= before.size());
            CHECK(std::equal(before.begin(), before.end(), after.begin()));
        }
        CHECK(std::set<std::string>(after.begin(), after.end()).size() == after.size());
        before = after;
    }
    INFO(killed << " kills");
    CHECK(killed >= 3);
    const Words there = complete_lines(read_file(path));
    const Ended last = fragsim::test::fragsim(with(kGrid, {"-o", path}));
    CHECK(contains(last.err, fmt::format("24 runs, {} there already", there.size())));
    CHECK(read_file(path) == expected);
}

TEST_CASE("a sweep goes on from a file that was cut off anywhere", "[cli][sweep][kill]") {
    TempFolder folder;
    const std::string whole = swept(kGrid);
    // Finished in another order than the grid's.
    const Words lines = complete_lines(whole);
    std::string shuffled;
    for (const std::size_t i : {5u, 0u, 17u, 3u}) shuffled += lines[i] + '\n';
    std::mt19937 random(2);
    std::vector<std::size_t> cuts{0, 1, lines[5].size(), lines[5].size() + 1, lines[5].size() + 2, shuffled.size()};
    for (int i = 0; i < 6; ++i) cuts.push_back(random() % shuffled.size());
    for (const std::size_t cut : cuts) {
        INFO("cut at " << cut);
        write_file(folder / "runs", shuffled.substr(0, cut));
        CHECK(into_file(folder, "runs", kGrid) == whole);
    }
}

TEST_CASE("a finished sweep runs nothing again and leaves its file alone", "[cli][sweep]") {
    TempFolder folder;
    into_file(folder, "runs", kGrid);
    const auto written = std::filesystem::last_write_time(folder / "runs");
    const Ended again = fragsim::test::fragsim(with(kGrid, {"-o", folder / "runs"}));
    CHECK(again.status == 0);
    CHECK(contains(again.err, "24 runs, 24 there already"));
    CHECK(std::filesystem::last_write_time(folder / "runs") == written);
}

TEST_CASE("a sweep that grew keeps what is there", "[cli][sweep]") {
    TempFolder folder;
    const Words small{"sweep", kStreams, "--axis", "caching.max_split_size_mb=64", "--axis", "capacity=1GiB"};
    const Words large{
        "sweep", kStreams, "--axis", "caching.max_split_size_mb=[32,64]", "--axis", "capacity=[2GiB,1GiB]"};
    into_file(folder, "runs", small);
    const Ended grown = fragsim::test::fragsim(with(large, {"-o", folder / "runs"}));
    CHECK(contains(grown.err, "4 runs, 1 there already"));
    CHECK(read_file(folder / "runs") == swept(large));
    check_refused(with(small, {"-o", folder / "runs"}), "runs:1: holds a run that is not one of this sweep", "--force");
    CHECK(read_file(folder / "runs") == swept(large));
    CHECK(into_file(folder, "runs", with(small, {"--force"})) == swept(small));
}

TEST_CASE("other options make other runs", "[cli][sweep]") {
    TempFolder folder;
    const Words grid{"sweep", kOom, "--policy", "caching", "--capacity", "5GiB", "-o", folder / "runs"};
    CHECK(swept(grid) == "");
    check_refused(with(grid, {"--on-oom", "stop"}), "holds a run that is not one of this sweep", "give another file");
}

TEST_CASE("a file that is not a sweep's is refused and left as it was", "[cli][sweep]") {
    TempFolder folder;
    const std::string line = swept({"sweep", kStreams, "--policy", "caching", "-q"});
    std::string of_other_version = line;
    of_other_version.replace(of_other_version.find(R"("version":"0)"), 12, R"("version":"9)");
    const std::pair<std::string, std::string> kFiles[] = {{"no line end", "is not a sweep's"},
        {"a line\n", ":1: exists and is not a line of a sweep"}, {"{}\n", "is not a line of a sweep"},
        {line + "{}\n", ":2: exists and is not a line of a sweep"}, {line + "more", "is not a sweep's"},
        {line + line, ":2: holds a run twice"}, {of_other_version, "a run of fragsim 9"}};
    for (const auto& [content, message] : kFiles) {
        INFO(content.substr(0, 80));
        write_file(folder / "file", content);
        check_refused({"sweep", kStreams, "--policy", "caching", "-o", folder / "file"}, message, "--force");
        CHECK(read_file(folder / "file") == content);
    }
}

TEST_CASE("two sweeps do not write one file", "[cli][sweep]") {
    TempFolder folder;
    const int file = open((folder / "runs").c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(flock(file, LOCK_EX) == 0);
    check_refused({"sweep", kStreams, "-o", folder / "runs"}, "another sweep is writing it", "wait for its end");
    close(file);
}

TEST_CASE("wrong axes are refused before anything is read or written", "[cli][sweep]") {
    TempFolder folder;
    const auto check = [&](const Words& words, const std::string& message, const std::string& hint) {
        check_refused(with({"sweep", "absent.pickle", "-o", folder / "runs"}, words), message, hint);
        CHECK(folder.files().empty());
    };
    check({"--axis", "caching.max_split_size=[64]"}, "unknown parameter of policy caching 'max_split_size'",
        "'max_split_size_mb'");
    check({"--axis", "cachng.max_split_size_mb=[64]"}, "unknown policy 'cachng'", "did you mean 'caching'?");
    check({"--axis", "caching.max_split_size_mb=[64:32]"}, "range '64:32' is empty", "[FROM:TO:STEP]");
    check({"--policy", "caching:max_split_size_mb=64", "--axis", "caching.max_split_size_mb=32"}, "given twice",
        "keep one");
    check({"--policy", "split-capped", "--axis", "capacity=1GiB"}, "needs the parameter 'max_split_size_mb'", "=VALUE");
    check(
        {"--capacity", "1GiB", "--axis", "capacity=2GiB"}, "--capacity beside an axis", "put its value into the axis");
    check({"--axis", "caching.max_split_size_mb=[20:1000]", "--axis", "capacity=[1GiB:2GiB:1MiB]"}, "1,005,525 runs",
        "--max-runs 1005525");
    check({"--axis", "caching.max_split_size_mb=[20:29]", "--max-runs", "9"}, "10 runs", "--max-runs 10");
    // More than memory holds: refused before anything is made of them.
    const std::string million = "=[1:1000000]";
    check({"--axis", "caching.max_split_size_mb" + million, "--axis", "caching.max_non_split_rounding_mb" + million},
        "1,000,000,000,000 runs", "--max-runs 1000000000000");
    check({"--axis", "caching.a" + million, "--axis", "caching.b" + million, "--axis", "caching.c" + million},
        "10^18 runs or more", "leave out an axis");
}

TEST_CASE("a value that a policy refuses is found before the first run", "[cli][sweep]") {
    check_refused({"sweep", kStreams, "--axis", "caching.max_split_size_mb=[64,32,5]"}, "5 is too small", "20");
    check_refused({"sweep", kStreams, kStreams, "--policy", "caching"}, "is asked for twice", "once");
}

TEST_CASE("required parameters come from an axis, bracketed values whole", "[cli][sweep]") {
    const Words lines = complete_lines(
        swept({"sweep", kStreams, "--policy", "split-capped", "--axis", "split-capped.max_split_size_mb=[32,64]",
            "--axis", "split-capped.roundup_power2_divisions=[4,[256:1,512:2,>:4]]"}));
    REQUIRE(lines.size() == 4);
    const json last = json::parse(lines[3]);
    CHECK(last["policy"]["params"]["max_split_size_mb"] == 64);
    CHECK(last["policy"]["params"]["roundup_power2_divisions"] == "[256:1,512:2,>:4]");
}

TEST_CASE("a sweep keeps the order of its policies, and options may stand anywhere", "[cli][sweep]") {
    const Words lines = complete_lines(swept({"sweep", "--axis", "caching.max_split_size_mb=[64]", kStreams, "--policy",
        "direct", "--alloc-conf", "expandable_segments:True", "--policy", "caching"}));
    Words names;
    for (const std::string& line : lines) names.push_back(json::parse(line)["policy"]["name"]);
    CHECK(names == Words{"direct", "expandable", "caching"});
}

TEST_CASE("without a policy or an axis of one the recording's own settings are swept", "[cli][sweep]") {
    const Words lines = complete_lines(swept({"sweep", "traces/samples/streams.expandable.pickle.gz"}));
    REQUIRE(lines.size() == 1);
    CHECK(json::parse(lines[0])["policy"]["name"] == "expandable");
}

TEST_CASE("a sweep does not write over a trace, even when told to overwrite", "[cli][sweep]") {
    TempFolder folder;
    const std::string trace = folder / "run.pickle.gz", before = read_file(sample("streams.default"));
    write_file(trace, before);
    const Ended ended = fragsim::test::fragsim(
        {"sweep", trace, "--axis", "caching.max_split_size_mb=[32,64]", "-f", "-o", trace});
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, "is one of the traces"));
    CHECK(read_file(trace) == before);
}
