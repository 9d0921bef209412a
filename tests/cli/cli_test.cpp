// The command line as users and scripts meet it: status, stdout and stderr, one at a time.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/answers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

using namespace fragsim::test;
using nlohmann::json;

namespace {

const std::string kStreams = "traces/samples/streams.default.pickle.gz";
const std::string kOom = "traces/samples/oom.default.pickle.gz";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::size_t lines(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// What a refused command line looks like.
void check_refused(const Ended& ended, int status, const std::string& message, const std::string& hint) {
    CHECK(ended.status == status);
    CHECK(ended.out == "");
    INFO(ended.err);
    CHECK(ended.err.starts_with("fragsim: error: "));
    CHECK(contains(ended.err, message));
    CHECK(contains(ended.err, "\nhint: "));
    CHECK(contains(ended.err, hint));
    CHECK(lines(ended.err) <= 3);
}

void check_usage(const std::vector<std::string>& arguments, const std::string& message, const std::string& hint) {
    INFO("fragsim " << fmt::format("{}", fmt::join(arguments, " ")));
    check_refused(fragsim::test::fragsim(arguments), 2, message, hint);
}

Ended run(const std::vector<std::string>& arguments, const Surroundings& surroundings = {}) {
    return fragsim::test::fragsim(arguments, surroundings);
}

}  // namespace

// --- help -----------------------------------------------------------------------------------------------------------

TEST_CASE("without arguments a few lines of help go to stderr, status 2", "[cli][help]") {
    const Ended ended = run({});
    CHECK(ended.status == 2);
    CHECK(ended.out == "");
    CHECK(contains(ended.err, "usage: fragsim"));
    CHECK(lines(ended.err) <= 8);
}

TEST_CASE("help goes to stdout, status 0", "[cli][help]") {
    for (const std::vector<std::string>& arguments :
        std::vector<std::vector<std::string>>{{"--help"}, {"help"}, {"inspect", "--help"}, {"replay", "--help"},
            {"compare", "--help"}, {"verify", "--help"}, {"list", "--help"}}) {
        const Ended ended = run(arguments);
        CHECK(ended.status == 0);
        CHECK(ended.err == "");
        CHECK(contains(ended.out, "fragsim"));
        if (arguments.size() == 2) CHECK(contains(ended.out, "example"));
    }
}

TEST_CASE("the version is one line", "[cli][help]") {
    const Ended ended = run({"--version"});
    CHECK(ended.status == 0);
    CHECK(ended.out.starts_with("fragsim "));
    CHECK(lines(ended.out) == 1);
}

// --- wrong usage ----------------------------------------------------------------------------------------------------

TEST_CASE("unknown words are answered with the closest known one", "[cli][usage]") {
    check_usage({"inspekt", kStreams}, "'inspekt'", "'inspect'");
    check_usage({"replay", kStreams, "--capcity", "1GiB"}, "'--capcity'", "'--capacity'");
    check_usage({"replay", kStreams, "--capcity=1GiB"}, "'--capcity'", "'--capacity'");
    check_usage({"replay", kStreams, "--policy", "cachin"}, "'cachin'", "'caching'");
    check_usage(
        {"replay", kStreams, "--policy", "caching:max_split_size=1"}, "'max_split_size'", "'max_split_size_mb'");
    check_usage({"replay", kStreams, "--alloc-conf", "max_split_size:128"}, "'max_split_size'", "'max_split_size_mb'");
    check_usage({"replay", kStreams, "--report", "tabel"}, "tabel", "'table'");
    check_usage({"list", "polices"}, "polices", "'policies'");
}

TEST_CASE("an unknown word that is like nothing known is told where to look", "[cli][usage]") {
    check_usage({"xyzzyxyzzy"}, "'xyzzyxyzzy'", "fragsim --help");
    check_usage({"replay", kStreams, "--xyzzyxyzzy"}, "'--xyzzyxyzzy'", "fragsim replay --help");
}

TEST_CASE("a missing trace, a missing value and a missing parameter are wrong usage", "[cli][usage]") {
    check_usage({"replay"}, "TRACE", "--help");
    check_usage({"replay", kStreams, "--capacity"}, "--capacity", "--help");
    check_usage(
        {"replay", kStreams, "--policy", "split-capped"}, "max_split_size_mb", "split-capped:max_split_size_mb=");
}

TEST_CASE("sizes that cannot be read or are ambiguous are wrong usage", "[cli][usage]") {
    check_usage({"replay", kStreams, "--capacity", "80G"}, "'80G'", "GiB");
    check_usage({"replay", kStreams, "--capacity", "much"}, "'much'", "GiB");
    check_usage({"verify", kStreams, "--capacity", "-1"}, "'-1'", "GiB");
    check_usage({"replay", kStreams, "--timeline-every", "0"}, "--timeline-every", "--help");
}

TEST_CASE("settings that PyTorch refuses are wrong usage, with the character", "[cli][usage]") {
    check_usage({"replay", kStreams, "--alloc-conf", "max_split_size_mb:5"}, "character 19", "20");
}

TEST_CASE("logs are for one trace and one policy", "[cli][usage]") {
    TempFolder folder;
    check_usage({"replay", kStreams, "--policy", "caching", "--policy", "caching:torch_version=2.13", "--timeline",
                    folder / "t.csv"},
        "--timeline", "each");
    CHECK(folder.files().empty());
}

TEST_CASE("wrong usage is found before any trace is read", "[cli][usage]") {
    check_usage({"replay", "no-such-file", "--capacity", "80G"}, "'80G'", "GiB");
    check_usage({"replay", "no-such-file", "--policy", "cachin"}, "'cachin'", "'caching'");
}

// --- bad input ------------------------------------------------------------------------------------------------------

TEST_CASE("a trace that cannot be read is status 3 with its name and a hint", "[cli][input]") {
    TempFolder folder;
    write_file(folder / "empty", "");
    write_file(folder / "words", "once upon a time\n");
    write_file(folder / "pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    write_file(folder / "page.pickle", "<!DOCTYPE html><html></html>");
    const std::string whole = read_file(sample("streams.default"));
    write_file(folder / "cut.pickle.gz", whole.substr(0, whole.size() / 2));
    for (const std::string name : {"missing", "empty", "words", "pointer", "page.pickle", "cut.pickle.gz", "."}) {
        CAPTURE(name);
        const std::string path = folder / name;
        for (const char* command : {"inspect", "replay", "compare", "verify"})
            check_refused(run({command, path}), 3, path, "");
    }
}

TEST_CASE("a device that the snapshot does not hold is named with those it does", "[cli][input]") {
    const Ended ended = run({"replay", sample("twodev.default"), "--gpu", "7"});
    check_refused(ended, 3, "device 7", "0, 1");
}

TEST_CASE("doubtful entries are counted and shown, and --strict makes them errors", "[cli][input]") {
    TempFolder folder;
    write_file(folder / "zero.csv", "op,id,size,stream\nalloc,a,512,0\nalloc,b,0,0\nfree,a,,0\n");
    const Ended shown = run({"replay", folder / "zero.csv"});
    CHECK(shown.status == 0);
    CHECK(contains(shown.err, "warning"));
    CHECK(contains(shown.err, "line 3"));
    const Ended strict = run({"replay", folder / "zero.csv", "--strict"});
    check_refused(strict, 3, "zero.csv", "--strict");
    CHECK(run({"replay", kStreams, "--strict"}).status == 0);
}

// --- results --------------------------------------------------------------------------------------------------------

TEST_CASE("an out of memory is a result: status 0, or 1 when asked", "[cli][status]") {
    const Ended ended = run({"replay", kOom, "--capacity", "5GiB"});
    CHECK(ended.status == 0);
    CHECK(contains(ended.out, "out of memory"));
    CHECK(run({"replay", kOom, "--capacity", "5GiB", "--fail-on-oom"}).status == 1);
    CHECK(run({"replay", kStreams, "--fail-on-oom"}).status == 0);
    CHECK(run({"compare", kOom, "--capacity", "5GiB", "--fail-on-oom"}).status == 1);
}

TEST_CASE("an audit without findings is status 0", "[cli][status]") {
    const Ended ended = run({"replay", kStreams, "--audit", "--capacity", "220MiB"});
    CHECK(ended.status == 0);
    CHECK_FALSE(contains(ended.err, "audit"));
}

TEST_CASE("verify says exact with status 0 and not exact with status 1 and the first divergence", "[cli][status]") {
    const Ended exact = run({"verify", kStreams});
    CHECK(exact.status == 0);
    CHECK(contains(exact.out, "exact"));
    const Ended not_exact = run({"verify", kOom, "--alloc-conf", "roundup_power2_divisions:2"});
    CHECK(not_exact.status == 1);
    CHECK(contains(not_exact.out, "first divergence at event"));
    CHECK(contains(not_exact.out, "expected"));
}

TEST_CASE("verify's JSON has the contract's keys", "[cli][json]") {
    const json document = run_json({"verify", sample("twodev.default"), "--json"});
    REQUIRE(document["results"].size() == 2);
    for (const json& result : document["results"]) {
        for (const char* key : {"device", "completeness", "exact", "allocs", "allocs_exact", "segment_events",
                 "segment_events_exact", "first_divergence"})
            CHECK(result.contains(key));
        CHECK(result["exact"] == true);
        CHECK(result["first_divergence"].is_null());
        CHECK(result["allocs"] == result["allocs_exact"]);
    }
    const Ended not_exact = run({"verify", kOom, "--alloc-conf", "roundup_power2_divisions:2", "--json"});
    CHECK(not_exact.status == 1);
    const json divergence = json::parse(not_exact.out)["results"][0]["first_divergence"];
    for (const char* key : {"event", "expected", "actual"}) CHECK(divergence.contains(key));
}

TEST_CASE("replay's JSON has the contract's keys", "[cli][json]") {
    const json document = run_json({"replay", kOom, "--capacity", "5GiB", "--policy", "caching", "--json"});
    CHECK(document["schema"] == json{{"name", "fragsim.result"}, {"version", "2.0.0"}});
    CHECK(document["tool"]["name"] == "fragsim");
    CHECK(document["argv"][0] == "replay");
    for (const char* key :
        {"path", "format", "sha256", "ops", "device", "completeness", "allocator_settings", "diagnostics"})
        CHECK(document["trace"].contains(key));
    CHECK(document["trace"]["sha256"].get<std::string>().size() == 64);
    REQUIRE(document["results"].size() == 1);
    const json& result = document["results"][0];
    CHECK(result["policy"]["name"] == "caching");
    CHECK(result["policy"]["params"].contains("max_split_size_mb"));
    CHECK(result["device"] ==
          json{{"kind", "host"}, {"capacity_bytes", std::int64_t{5} << 30}, {"memory_limit_bytes", nullptr}});
    CHECK(result.contains("run"));
    for (const std::string statistic :
        {"requested_bytes", "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes"})
        for (const std::string pool : {".all", ".large_pool", ".small_pool"})
            for (const std::string moment : {".current", ".peak"})
                CHECK(result["metrics"][statistic + pool + moment].is_number_integer());
    for (const char* key :
        {"num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free", "num_sync_all_streams"})
        CHECK(result["metrics"][key].is_number_integer());
    REQUIRE(result["ooms"].size() == result["metrics"]["num_ooms"]);
    for (const char* key :
        {"op", "requested_bytes", "reserved_bytes", "allocated_bytes", "largest_free_bytes", "cause"})
        CHECK(result["ooms"][0].contains(key));
}

TEST_CASE("inspect's JSON says what is in the file", "[cli][json]") {
    const json document = run_json({"inspect", kStreams, kOom, "--json"});
    REQUIRE(document["traces"].size() == 2);
    CHECK(document["traces"][0]["path"] == kStreams);
    CHECK(document["traces"][0]["completeness"] == "complete");
    CHECK(document["traces"][0]["streams"] == 3);
    CHECK(document["traces"][1]["recorded_ooms"] > 0);
}

TEST_CASE("two runs print the same but for what varies", "[cli][json]") {
    const std::vector<std::string> command{"compare", kOom, "--capacity", "6GiB", "--policy", "caching", "--policy",
        "split-capped:max_split_size_mb=64", "--json"};
    json first = run_json(command), second = run_json(command);
    for (json* document : {&first, &second})
        for (json& result : (*document)["results"]) result.erase("run");
    CHECK(first == second);
}

TEST_CASE("policies are run in the order of the command line", "[cli][replay]") {
    const json document = run_json({"compare", kStreams, "--alloc-conf", "garbage_collection_threshold:0.5", "--policy",
        "split-capped:max_split_size_mb=20", "--alloc-conf", "", "-q", "--json"});
    REQUIRE(document["results"].size() == 3);
    CHECK(document["results"][0]["policy"]["params"]["garbage_collection_threshold"] == "0.5");
    CHECK(document["results"][1]["policy"]["name"] == "split-capped");
    CHECK(document["results"][2]["policy"]["name"] == "caching");
}

TEST_CASE("without a policy the recording's settings are taken", "[cli][replay]") {
    const json document = run_json({"replay", sample("gpt2_varlen.split128"), "--json"});
    CHECK(document["results"][0]["policy"]["name"] == "split-capped");
    CHECK(document["results"][0]["policy"]["params"]["max_split_size_mb"] == 128);
}

TEST_CASE("--gpu picks one device's history, without it the busiest is taken", "[cli][replay]") {
    const auto ops = [](const std::vector<std::string>& more) {
        std::vector<std::string> command{"replay", sample("twodev.default"), "--json"};
        command.insert(command.end(), more.begin(), more.end());
        return run_json(command)["trace"];
    };
    const json zero = ops({"--gpu", "0"}), one = ops({"--gpu", "1"}), busiest = ops({});
    CHECK(zero["device"] == 0);
    CHECK(one["device"] == 1);
    CHECK(busiest["buffers"] == std::max(zero["buffers"].get<int>(), one["buffers"].get<int>()));
}

TEST_CASE("--on-oom stop ends there, skip goes on", "[cli][replay]") {
    const json stopped = run_json({"replay", kOom, "--capacity", "5GiB", "--on-oom", "stop", "--json"})["results"][0];
    const json skipped = run_json({"replay", kOom, "--capacity", "5GiB", "--json"})["results"][0];
    CHECK(stopped["ooms"].size() == 1);
    CHECK(stopped["stopped"] == true);
    CHECK(skipped["ooms"].size() > 1);
    CHECK(skipped["ops_replayed"] > stopped["ops_replayed"]);
}

// --- standard input and formats ------------------------------------------------------------------------------------

TEST_CASE("standard input is read as -, compressed or not, with the same result", "[cli][stdin]") {
    TempFolder folder;
    REQUIRE(shell("gzip -dc " + kStreams + " > " + folder / "plain").status == 0);
    json documents[3] = {run_json({"replay", kStreams, "--json"})};
    const char* inputs[] = {nullptr, "streams.gz", "plain"};
    write_file(folder / "streams.gz", read_file(sample("streams.default")));
    for (int i : {1, 2}) {
        Surroundings surroundings;
        surroundings.input = folder / inputs[i];
        const Ended ended = run({"replay", "-", "--json"}, surroundings);
        REQUIRE(ended.status == 0);
        documents[i] = json::parse(ended.out);
    }
    for (int i : {1, 2}) CHECK(documents[i]["results"][0]["metrics"] == documents[0]["results"][0]["metrics"]);
    CHECK(documents[1]["trace"]["sha256"] == documents[0]["trace"]["sha256"]);  // of the file as stored
}

TEST_CASE("a format is recognised by its content, not by its name", "[cli][stdin]") {
    TempFolder folder;
    write_file(folder / "snapshot.csv", read_file(sample("streams.default")));
    write_file(folder / "log.pickle", "op,id,size\nalloc,1,512\nfree,1,\n");
    write_file(folder / "text", "# fragsim trace 1\na 1 512\nf 1\n");
    CHECK(run_json({"inspect", folder / "snapshot.csv", "--json"})["traces"][0]["format"] == "pytorch-snapshot");
    CHECK(run_json({"inspect", folder / "log.pickle", "--json"})["traces"][0]["ops"] == 2);
    CHECK(run_json({"inspect", folder / "text", "--json"})["traces"][0]["ops"] == 2);
}

// --- files that are written ----------------------------------------------------------------------------------------

TEST_CASE("a file that exists is kept without --force and replaced with it", "[cli][files]") {
    TempFolder folder;
    for (const char* option : {"--timeline", "--driver-log"}) {
        write_file(folder / "kept", "precious");
        check_refused(run({"replay", kStreams, option, folder / "kept"}), 2, "kept exists", "--force");
        CHECK(read_file(folder / "kept") == "precious");
        const Ended forced = run({"replay", kStreams, option, folder / "kept", "--force"});
        CHECK(forced.status == 0);
        CHECK(contains(forced.err, "wrote " + folder / "kept"));
        CHECK(read_file(folder / "kept") != "precious");
        CHECK(folder.files() == std::vector<std::string>{"kept"});
    }
}

TEST_CASE("a run that fails leaves no file behind", "[cli][files]") {
    TempFolder folder;
    CHECK(
        run({"replay", "no-such-file", "--timeline", folder / "t.csv", "--driver-log", folder / "d.csv"}).status == 3);
    CHECK(folder.files().empty());
}

TEST_CASE("a file that cannot be written is status 4", "[cli][files]") {
    check_refused(run({"replay", kStreams, "--timeline", "/no/such/folder/t.csv"}), 4, "/no/such/folder/t.csv", "");
    Surroundings full;
    full.output = "/dev/full";
    const Ended ended = run({"list", "metrics"}, full);
    CHECK(ended.status == 4);
    CHECK(contains(ended.err, "standard output"));
}

TEST_CASE("the driver log has a line for every call that succeeded", "[cli][files]") {
    TempFolder folder;
    const json document = run_json({"replay", kStreams, "--policy", "caching", "--capacity", "210MiB", "--driver-log",
        folder / "d.csv", "--json"});
    const json& metrics = document["results"][0]["metrics"];
    const std::string log = read_file(folder / "d.csv");
    const auto rows = split(log, '\n');
    CHECK(rows.front() == "op,call,bytes,address,stream");
    CHECK(rows.back() == "");
    std::int64_t mallocs = 0, frees = 0, reserved = 0, peak = 0, last_op = 0;
    for (std::size_t i = 1; i + 1 < rows.size(); ++i) {
        const auto fields = split(rows[i], ',');
        REQUIRE(fields.size() == 5);
        CHECK(std::stoll(fields[0]) >= last_op);
        last_op = std::stoll(fields[0]);
        const bool grows = fields[1] == "malloc";
        CHECK((grows || fields[1] == "free"));
        (grows ? mallocs : frees) += 1;
        reserved += (grows ? 1 : -1) * std::stoll(fields[2]);
        peak = std::max(peak, reserved);
        CHECK(fields[3].starts_with("0x"));
    }
    CHECK(mallocs == metrics["num_device_alloc"]);
    CHECK(frees == metrics["num_device_free"]);
    CHECK(frees > 0);
    CHECK(reserved == metrics["reserved_bytes.all.current"]);
    CHECK(peak == metrics["reserved_bytes.all.peak"]);
}

TEST_CASE("the timeline has a line for every op, or every N-th", "[cli][files]") {
    TempFolder folder;
    const json document =
        run_json({"replay", kStreams, "--policy", "caching", "--timeline", folder / "all.csv", "--json"});
    const auto rows = split(read_file(folder / "all.csv"), '\n');
    CHECK(rows.front() == "op,time_us,requested_bytes,allocated_bytes,active_bytes,reserved_bytes,largest_free_bytes");
    REQUIRE(rows.size() == document["trace"]["ops"].get<std::size_t>() + 2);
    std::int64_t requested = 0, reserved = 0;
    for (std::size_t i = 1; i + 1 < rows.size(); ++i) {
        const auto fields = split(rows[i], ',');
        REQUIRE(fields.size() == 7);
        CHECK(fields[0] == std::to_string(i - 1));
        CHECK(std::stoll(fields[1]) > 0);  // this recording has time stamps
        CHECK(std::stoll(fields[2]) <= std::stoll(fields[4]));
        CHECK(std::stoll(fields[4]) <= std::stoll(fields[5]));
        CHECK(std::stoll(fields[6]) <= std::stoll(fields[5]));
        requested = std::max(requested, std::stol(fields[2]));
        reserved = std::max(reserved, std::stol(fields[5]));
    }
    const json& metrics = document["results"][0]["metrics"];
    CHECK(requested == metrics["requested_bytes.all.peak"]);
    CHECK(reserved == metrics["reserved_bytes.all.peak"]);

    REQUIRE(run({"replay", kStreams, "--timeline", folder / "some.csv", "--timeline-every", "10"}).status == 0);
    const auto some = split(read_file(folder / "some.csv"), '\n');
    CHECK(some[1] == rows[1]);
    CHECK(some[2] == rows[11]);
    CHECK(some.size() == (rows.size() - 3) / 10 + 3);
}

TEST_CASE("-q says nothing on stderr", "[cli][files]") {
    TempFolder folder;
    const Ended quiet = run(
        {"replay", kStreams, "--timeline", folder / "t.csv", "--alloc-conf", "garbage_collection_threshold:0.8", "-q"});
    CHECK(quiet.status == 0);
    CHECK(quiet.err == "");
    CHECK(contains(run({"replay", kStreams, "--alloc-conf", "garbage_collection_threshold:0.8"}).err,
        "garbage_collection_threshold does nothing"));
}

TEST_CASE("Ctrl-C leaves no partial file and is status 130", "[cli][files]") {
    // Standard input is a pipe that stays open: the program has created its file and waits for the trace.
    TempFolder folder;
    REQUIRE(shell("mkfifo " + folder / "pipe").status == 0);
    for (const int signal : {SIGINT, SIGTERM}) {
        Surroundings surroundings;
        Running writer(
            {"/bin/sh", "-c", "exec 3<>" + folder / "pipe" + "; printf '# fragsim trace 1\\na 1 512\\n' >&3; sleep 20"},
            surroundings);
        surroundings.input = folder / "pipe";
        Running program({FRAGSIM_PROGRAM, "replay", "-", "--timeline", folder / "t.csv"}, surroundings);
        for (int i = 0; i < 200 && folder.files().size() < 2; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        CHECK(folder.files().size() == 2);  // the pipe and the unfinished file
        program.signal(signal);
        CHECK(program.wait().status == 130);
        CHECK(folder.files() == std::vector<std::string>{"pipe"});
        writer.signal(SIGKILL);
    }
}

// --- terminals ------------------------------------------------------------------------------------------------------

TEST_CASE("colour is for terminals: not in pipes, not with NO_COLOR, not on a dumb one", "[cli][color]") {
    const auto colored = [](const Surroundings& surroundings, const std::string& mode = "auto") {
        const Ended ended = run({"replay", kStreams, "--color", mode}, surroundings);
        CHECK(ended.status == 0);
        CHECK_FALSE(contains(ended.err, "\x1b"));
        return contains(ended.out, "\x1b[");
    };
    Surroundings pipe, terminal, no_color, dumb;
    terminal.terminal = no_color.terminal = dumb.terminal = true;
    terminal.variables = {{"TERM", "xterm"}};
    no_color.variables = {{"TERM", "xterm"}, {"NO_COLOR", "1"}};
    dumb.variables = {{"TERM", "dumb"}};
    CHECK_FALSE(colored(pipe));
    CHECK(colored(pipe, "always"));
    CHECK(colored(terminal));
    CHECK_FALSE(colored(terminal, "never"));
    CHECK_FALSE(colored(no_color));
    CHECK_FALSE(colored(dumb));
}

// --- what is refused with a reason, and what there is to choose from
// --------------------------------------------------

TEST_CASE("a recording without segments has nothing to verify against, status 3", "[cli][verify]") {
    const TempFolder folder;
    write_file(folder.path() + "/run.csv", "op,ptr,size\nalloc,0x7f0000000000,512\nfree,0x7f0000000000,\n");
    write_file(folder.path() + "/run.json",
        R"({"segments": [], "device_traces": [[{"action": "alloc", "addr": 139637976727552, "size": 512, "stream": 0}]]})");
    for (const char* name : {"/run.csv", "/run.json"})
        check_refused(run({"verify", folder.path() + name}), 3, "no segments recorded: addresses cannot be compared",
            "PyTorch snapshots");
}

TEST_CASE("a bare number below 1 MiB is no capacity", "[cli]") {
    check_usage({"replay", kOom, "--capacity", "24"}, "'24'", "24GiB?");
    check_usage({"replay", kOom, "--memory-limit", "24"}, "'24'", "24GiB?");
    check_usage({"explain", kOom, "--capacity", "9.79"}, "'9.79'", "9.79GiB?");
    check_usage({"sweep", kOom, "--axis", "capacity=[12,16GiB]"}, "'12'", "12GiB?");
    CHECK(run({"replay", kStreams, "--capacity", "24KiB"}).status == 0);
    CHECK(run({"replay", kStreams, "--capacity", "1048576"}).status == 0);
}

TEST_CASE("explain of several traces names the commands that take them", "[cli][explain]") {
    check_usage({"explain", kOom, kStreams}, "explain takes one trace", "tune and fragsim compare take several");
}

TEST_CASE("list --json is one document of all there is", "[cli][list]") {
    const json all = run_json({"list", "--json"});
    CHECK(all["schema"]["name"] == "fragsim.list");
    for (const char* kind : {"policies", "formats", "metrics", "reports"}) {
        CHECK_FALSE(all[kind].empty());
        const json one = run_json({"list", kind, "--json"});
        CHECK(one[kind] == all[kind]);
        CHECK(one.contains("policies") == (std::string(kind) == "policies"));
    }
    for (const json& policy : all["policies"])
        if (policy["name"] == "split-capped") {
            CHECK(policy["parameters"][0]["name"] == "max_split_size_mb");
            CHECK(policy["parameters"][0]["unit"] == "MiB");
        }
    check_usage({"list", "polices", "--json"}, "'polices'", "policies");
}
