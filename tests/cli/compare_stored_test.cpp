// fragsim compare with two results that it wrote before.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

using namespace fragsim::test;
using nlohmann::json;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Stored {
public:
    Stored() {
        run({"compare", sample("streams.default"), "--policy", "caching", "--policy",
            "split-capped:max_split_size_mb=24", "--report", "json=a.json"});
    }
    Ended run(const std::vector<std::string>& arguments) const {
        return fragsim::test::fragsim(arguments, {folder_.path(), "/dev/null", {}, false, ""});
    }
    // a.json with a part of it replaced.
    void edit(const std::string& part, const std::string& instead, const std::string& to = "b.json") const {
        std::string text = read_file(folder_ / "a.json");
        REQUIRE(contains(text, part));
        write_file(folder_ / to, text.replace(text.find(part), part.size(), instead));
    }
    const TempFolder& folder() const { return folder_; }

private:
    TempFolder folder_;
};

}  // namespace

TEST_CASE("a stored result is like itself", "[cli][compare]") {
    const Stored stored;
    const Ended ended = stored.run({"compare", "a.json", "a.json", "--fail-on-regression"});
    CHECK(ended.status == 0);
    CHECK(ended.out == "a.json against a.json: 2 runs: all as in the baseline\n");
    CHECK(ended.err == "");
}

TEST_CASE("two stored results are compared metric by metric, neutral ones too", "[cli][compare]") {
    const Stored stored;
    stored.edit("\"reserved_bytes.all.peak\": 297795584", "\"reserved_bytes.all.peak\": 301989888");
    Ended ended = stored.run({"compare", "a.json", "b.json"});
    CHECK(ended.status == 0);
    CHECK(contains(ended.out, "b.json against a.json: 2 runs: 1 worse, 1 the same"));
    CHECK(contains(ended.out, "caching"));
    CHECK(contains(ended.out, "284 MiB  288 MiB  +1.4 %  worse"));
    CHECK(stored.run({"compare", "a.json", "b.json", "--fail-on-regression"}).status == 1);
    CHECK(stored.run({"compare", "b.json", "a.json", "--fail-on-regression"}).status == 0);
    const json document = json::parse(stored.run({"compare", "a.json", "b.json", "--json"}).out);
    CHECK(document["runs"][0]["differences"][0]["candidate"] == 301989888);
    stored.edit("\"num_splits\": ", "\"num_splits\": 1");
    ended = stored.run({"compare", "a.json", "b.json"});
    CHECK(contains(ended.out, "num_splits"));
    CHECK(contains(ended.out, "changed"));
}

TEST_CASE("runs that only one result has are an error that names them", "[cli][compare]") {
    const Stored stored;
    stored.run({"compare", sample("streams.default"), "--policy", "caching", "--policy", "expandable", "--report",
        "json=c.json"});
    const Ended ended = stored.run({"compare", "a.json", "c.json"});
    CHECK(ended.status == 3);
    CHECK(contains(ended.err, "split-capped"));
    CHECK(contains(ended.err, "not in c.json"));
    CHECK(contains(ended.err, "expandable: not in a.json"));
    CHECK(contains(ended.out, "the same"));
    stored.run(
        {"replay", sample("streams.default"), "--policy", "caching", "--capacity", "1GiB", "--report", "json=d.json"});
    CHECK(contains(stored.run({"compare", "a.json", "d.json"}).err, "caching: not in"));
    stored.run({"compare", sample("streams.default"), "--policy", "caching", "--policy", "caching", "--report",
        "json=e.json"});
    CHECK(contains(stored.run({"compare", "e.json", "e.json"}).err, "there more than once"));
}

TEST_CASE("stored results are told by their schema, not by their name", "[cli][compare]") {
    const Stored stored;
    std::filesystem::copy_file(stored.folder() / "a.json", stored.folder() / "a.pickle");
    CHECK(stored.run({"compare", "a.pickle", "a.json"}).status == 0);
    // Sorted by another tool, so that the schema comes last.
    const Ended sorted =
        shell("python3 -c \"import json; print(json.dumps(json.load(open('a.json')), sort_keys=True))\" > s.json",
            {stored.folder().path(), "/dev/null", {}, false, ""});
    REQUIRE(sorted.status == 0);
    CHECK(stored.run({"compare", "a.json", "s.json"}).out == "s.json against a.json: 2 runs: all as in the baseline\n");
    // A snapshot as JSON is a trace.
    const Ended traces =
        stored.run({"compare", source_dir() + "/tests/data/streams.default.json.gz", "--policy", "caching"});
    CHECK(traces.status == 0);
    CHECK(contains(traces.out, "at least"));
}

TEST_CASE("the beginning of a trace tells that it is no result", "[cli][compare]") {
    const Stored stored;
    write_file(stored.folder() / "whole.json", "{\"segments\": [" + std::string(10 << 20, ' ') + "]}");
    const Surroundings here{stored.folder().path(), "/dev/null", {}, false, ""};
    REQUIRE(shell("gzip < whole.json | head -c 5000 > cut.json.gz", here).status == 0);
    // Had more been read, the damage would be what is wrong with it.
    const Ended ended = stored.run({"compare", "cut.json.gz", "--device", "hosts"});
    CHECK(ended.status == 2);
    CHECK(contains(ended.err, "unknown device 'hosts'"));
}

TEST_CASE("what does not go together is wrong usage", "[cli][compare]") {
    const Stored stored;
    const auto refused = [&](const std::vector<std::string>& arguments, const std::string& part) {
        const Ended ended = stored.run(arguments);
        INFO(ended.err);
        CHECK(ended.status == 2);
        CHECK(contains(ended.err, part));
        CHECK(contains(ended.err, "hint: "));
    };
    refused({"compare", "a.json", sample("streams.default")}, "a.json is a stored result");
    refused({"compare", "a.json"}, "1 stored results, compare takes two");
    refused({"compare", "a.json", "a.json", "a.json"}, "3 stored results");
    for (const std::vector<std::string>& option :
        std::vector<std::vector<std::string>>{{"--policy", "caching"}, {"--alloc-conf", ""}, {"--gpu", "0"},
            {"--capacity", "1GiB"}, {"--memory-limit", "1GiB"}, {"--on-oom", "stop"}, {"--frees", "completed"}, {"--device", "host"},
            {"--repeat", "2"}, {"--touch", "none"}, {"--ballast"}, {"--cost-profile", "absent.json"},
            {"--pace", "recorded"}, {"--address-space", "fresh"}, {"--audit"}, {"--fail-on-oom"}}) {
        std::vector<std::string> arguments{"compare", "a.json", "a.json"};
        arguments.insert(arguments.end(), option.begin(), option.end());
        refused(arguments, "nothing is replayed\nhint: leave out " + option.front() + "\n");
    }
    refused({"compare", sample("streams.default"), "--fail-on-regression"}, "--fail-on-regression");
    refused({"compare", "a.json", "a.json", "--report", "detail"}, "unknown report 'detail'");
    stored.run({"check", "--baseline", "base.json", "--update", sample("streams.default")});
    refused({"compare", "base.json", "a.json"}, "fragsim check --baseline base.json");
}

TEST_CASE("a damaged result is status 3 with the place", "[cli][compare]") {
    const Stored stored;
    const auto refused = [&](const std::string& part) {
        const Ended ended = stored.run({"compare", "a.json", "b.json"});
        INFO(ended.err);
        CHECK(ended.status == 3);
        CHECK(contains(ended.err, part));
    };
    write_file(stored.folder() / "b.json", read_file(stored.folder() / "a.json").substr(0, 5000));
    refused("b.json: line ");
    stored.edit("\"version\": \"2.0.0\"", "\"version\": \"3\"");
    refused("b.json: schema.version: version 3 is not known here");
    stored.edit("\"num_ooms\": 0", "\"num_ooms\": []");
    refused("b.json: results[0].metrics.num_ooms: expected an integer, found array");
    stored.edit("\"ooms\": []", R"("ooms": [{"op": 4294967296, "requested_bytes": 1, "cause": "capacity"}])");
    refused("b.json: results[0].ooms[0].op: expected an integer of at most 4294967295, found 4294967296");
    stored.edit("\"sha256\": \"", "\"sha1\": \"");
    refused("b.json: trace: without a sha256");
}
