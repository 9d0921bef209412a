// Commands and the bytes they print. A change is looked at and taken over with scripts/approve_golden.sh.
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

using namespace fragsim::test;

namespace {

std::string streams() { return "traces/samples/streams.default.pickle.gz"; }
std::string oom() { return "traces/samples/oom.default.pickle.gz"; }

// What varies from run to run or from version to version.
std::string masked(std::string text) {
    static const std::pair<std::regex, const char*> kMasks[] = {
        {std::regex(R"re("run": \{[^}]*\})re"), R"re("run": {...})re"},
        {std::regex(R"re(("tool": \{\s*"name": "fragsim",\s*"version": )"[^"]*")re"), R"re($1"VERSION")re"},
        {std::regex(R"(fragsim [0-9]+\.[0-9]+\.[0-9]+)"), "fragsim VERSION"},
    };
    for (const auto& [pattern, instead] : kMasks) text = std::regex_replace(text, pattern, instead);
    for (std::size_t at; (at = text.find(source_dir() + "/")) != std::string::npos;)
        text.erase(at, source_dir().size() + 1);
    return text;
}

std::string first_difference(const std::string& expected, const std::string& actual) {
    const auto a = split(expected, '\n'), b = split(actual, '\n');
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        const std::string left = i < a.size() ? a[i] : "(end)", right = i < b.size() ? b[i] : "(end)";
        if (left != right) return "line " + std::to_string(i + 1) + "\n  approved: " + left + "\n  now:      " + right;
    }
    return "";
}

void check_approved(const std::string& name, const std::vector<std::string>& arguments) {
    const Ended ended = fragsim::test::fragsim(arguments);
    std::string text =
        "status " + std::to_string(ended.status) + "\n--- stdout\n" + ended.out + "--- stderr\n" + ended.err;
    text = masked(std::move(text));
    const std::string file = source_dir() + "/tests/golden/" + name + ".approved";
    if (std::getenv("FRAGSIM_APPROVE")) {
        if (read_file(file) != text) write_file(file, text);
        return;
    }
    INFO("tests/golden/" << name << ".approved; if the change is meant: scripts/approve_golden.sh");
    CHECK(first_difference(read_file(file), text) == "");
}

}  // namespace

TEST_CASE("help texts are as approved", "[golden][help]") {
    check_approved("no_arguments", {});
    check_approved("help", {"--help"});
    for (const std::string command : {"explain", "tune", "inspect", "replay", "compare", "sweep", "check", "verify", "list"})
        check_approved("help_" + command, {command, "--help"});
}

TEST_CASE("lists are as approved", "[golden][list]") {
    for (const std::string what : {"policies", "formats", "metrics", "reports"})
        check_approved("list_" + what, {"list", what});
}

TEST_CASE("inspections are as approved", "[golden][inspect]") {
    check_approved("inspect_streams", {"inspect", streams()});
    check_approved("inspect_streams_json", {"inspect", streams(), "--json"});
    check_approved("inspect_two_devices", {"inspect", "traces/samples/twodev.default.pickle.gz"});
    check_approved("inspect_out_of_memory", {"inspect", "traces/samples/vit_multires.f70.pickle.gz"});
}

TEST_CASE("verifications are as approved", "[golden][verify]") {
    check_approved("verify_exact", {"verify", streams(), oom()});
    check_approved("verify_exact_json", {"verify", streams(), "--json"});
    check_approved("verify_not_exact", {"verify", oom(), "--alloc-conf", "roundup_power2_divisions:2"});
    check_approved("verify_not_exact_json", {"verify", oom(), "--alloc-conf", "roundup_power2_divisions:2", "--json"});
}

TEST_CASE("every report is as approved", "[golden][report]") {
    std::vector<std::string> names;
    for (const std::string& line : split(fragsim::test::fragsim({"list", "reports"}).out, '\n')) {
        if (line.empty()) break;  // below are those of comparisons
        names.push_back(line.substr(0, line.find(' ')));
    }
    CHECK(names.size() >= 3);
    for (const std::string& name : names) {
        check_approved("report_" + name, {"compare", oom(), "--capacity", "6GiB", "--policy", "caching", "--policy",
                                             "split-capped:max_split_size_mb=64", "--report", name});
        check_approved("report_" + name + "_plain", {"replay", streams(), "--policy", "caching", "--report", name});
    }
}

TEST_CASE("the README's question gets the approved answer: who survives 9.79 GiB", "[golden][report]") {
    check_approved("compare_vit", {"compare", "traces/samples/vit_multires.f70.pickle.gz", "--capacity", "9.79GiB",
                                      "--policy", "caching", "--policy", "split-capped:max_split_size_mb=128"});
}

TEST_CASE("errors are as approved", "[golden][error]") {
    check_approved("error_unknown_command", {"comprae"});
    check_approved("error_unknown_option", {"replay", streams(), "--polciy", "caching"});
    check_approved("error_ambiguous_size", {"replay", streams(), "--capacity", "80G"});
    check_approved("error_alloc_conf", {"replay", streams(), "--alloc-conf", "max_split_size_mb:5"});
    check_approved("error_missing_file", {"inspect", "no-such-file.pickle"});
}
