// The README's GitHub Actions example does what it says: its steps that call fragsim, or use what it wrote, are run as
// they stand there.
#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

using namespace fragsim::test;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The first ```yaml block of a Markdown text.
std::vector<std::string> yaml_of(const std::string& text) {
    std::vector<std::string> block;
    bool inside = false;
    for (const std::string& line : split(text, '\n')) {
        if (inside && line.starts_with("```")) break;
        if (inside) block.push_back(line);
        inside = inside || line.starts_with("```yaml");
    }
    return block;
}

// The scripts of `run:` keys, on their line or in the indented block below.
std::vector<std::string> scripts_of(const std::vector<std::string>& yaml) {
    std::vector<std::string> scripts;
    for (std::size_t i = 0; i < yaml.size(); ++i) {
        const std::size_t key = yaml[i].find("run: ");
        if (key == std::string::npos) continue;
        std::string script = yaml[i].substr(key + 5);
        if (script == "|") {
            script.clear();
            for (; i + 1 < yaml.size() && yaml[i + 1].find_first_not_of(' ') > key; ++i) script += yaml[i + 1] + '\n';
        }
        scripts.push_back(script);
    }
    return scripts;
}

// The checkout: the repository's files, the program built elsewhere and first in PATH.
struct Checkout {
    Checkout() {
        std::filesystem::create_directory(folder / "tests");
        std::filesystem::create_directory(folder / "traces");
        std::filesystem::copy_file(source_dir() + "/tests/baseline.json", folder / "tests/baseline.json");
        std::filesystem::create_directory_symlink(source_dir() + "/traces/samples", folder / "traces/samples");
        write_file(folder / "summary.md", "what other steps said\n");
    }
    Ended run(const std::string& script) const {
        return shell(script, {folder.path(), "/dev/null", {{"GITHUB_STEP_SUMMARY", folder / "summary.md"}}, false, ""});
    }
    std::string file(const std::string& name) const { return read_file(folder / name); }

    TempFolder folder;
};

std::vector<std::string> steps() {
    std::vector<std::string> all = scripts_of(yaml_of(read_file(source_dir() + "/README.md")));
    CHECK(all.size() >= 4);
    std::erase_if(all, [](const std::string& script) { return !contains(script, "fragsim"); });
    REQUIRE(all.size() == 2);
    return all;
}

}  // namespace

TEST_CASE("the README's workflow is green on the bundled baseline and writes its reports", "[cli][examples]") {
    const Checkout checkout;
    for (const std::string& script : steps()) {
        const Ended ended = checkout.run(script);
        INFO(script << ended.out << ended.err);
        CHECK(ended.status == 0);
        CHECK_FALSE(contains(ended.out, "::error"));
    }
    CHECK(contains(checkout.file("fragsim.xml"), "failures=\"0\" errors=\"0\""));
    CHECK(checkout.file("summary.md").starts_with("what other steps said\n"));
    CHECK(contains(checkout.file("summary.md"), "all as in the baseline"));
}

TEST_CASE(
    "the README's workflow is red on a planted regression, with annotations, XML and summary", "[cli][examples]") {
    const Checkout checkout;
    std::string baseline = checkout.file("tests/baseline.json");
    const std::string was = "max_split_size_mb=128", is = "max_split_size_mb=24";
    for (std::size_t at = 0; (at = baseline.find(was, at)) != std::string::npos;) baseline.replace(at, was.size(), is);
    write_file(checkout.folder / "tests/baseline.json", baseline);
    const std::vector<std::string> scripts = steps();
    const Ended check = checkout.run(scripts[0]);
    CHECK(check.status == 1);
    CHECK(contains(
        check.out, "::error file=tests/baseline.json,title=traces/samples/streams.default.pickle.gz%2C split"));
    CHECK(checkout.run(scripts[1]).status == 0);
    CHECK(contains(checkout.file("fragsim.xml"), "<failure "));
    CHECK(
        contains(checkout.file("summary.md"), "| traces/samples/streams.default.pickle.gz | split-capped:max\\_split"));
}
