// Every command that the README or a help text shows runs as it stands there.
#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

using namespace fragsim::test;

namespace {

std::vector<std::string> lines_of(const std::string& text) { return split(text, '\n'); }

std::string trimmed(const std::string& line) {
    const std::size_t first = line.find_first_not_of(" \t$");
    return first == std::string::npos ? "" : line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

// Does the line start fragsim, by any path or at the end of a pipe?
bool runs_fragsim(const std::string& line) {
    for (const std::string& part : split(line, '|')) {
        const std::string word = trimmed(part).substr(0, trimmed(part).find(' '));
        if (word == "fragsim" || word.ends_with("/fragsim")) return true;
    }
    return false;
}

// Commands inside ``` blocks of a Markdown text; a backslash continues a line.
std::vector<std::string> commands_of_markdown(const std::string& text) {
    std::vector<std::string> commands;
    bool code = false;
    std::string line;
    for (const std::string& piece : lines_of(text)) {
        if (piece.starts_with("```")) code = !code;
        line += piece;
        if (line.ends_with('\\')) {
            line.pop_back();
            continue;
        }
        if (code && runs_fragsim(line)) commands.push_back(trimmed(line));
        line.clear();
    }
    return commands;
}

// The lines below "example" in a help text.
std::vector<std::string> commands_of_help(const std::string& text) {
    std::vector<std::string> commands;
    bool examples = false;
    for (const std::string& line : lines_of(text)) {
        examples = examples || line.find("example") != std::string::npos;
        if (examples && runs_fragsim(line)) commands.push_back(trimmed(line));
    }
    return commands;
}

// A folder where the traces of the examples exist under their names, and those of the repository under theirs.
void furnish(const TempFolder& folder) {
    std::filesystem::create_directory_symlink(source_dir() + "/traces", folder / "traces");
    std::filesystem::create_directory(folder / "build");
    std::filesystem::create_directory(folder / "build/release");
    std::filesystem::create_symlink(FRAGSIM_PROGRAM, folder / "build/release/fragsim");
    const std::string recording = read_file(sample("streams.default"));
    write_file(folder / "run.pickle.gz", recording);
    REQUIRE(shell("gzip -dc run.pickle.gz > run.pickle && cp run.pickle rank0.pickle && cp run.pickle rank1.pickle",
                {.folder = folder.path(), .input = "/dev/null", .variables = {}, .terminal = false, .output = ""})
                .status == 0);
    write_file(folder / "error.txt", "CUDA out of memory. Tried to allocate 2.00 GiB.");
    // What `check` and `compare` with stored results begin with.
    std::filesystem::create_directory(folder / "tests");
    std::filesystem::create_symlink(source_dir() + "/tests/baseline.json", folder / "tests/baseline.json");
    REQUIRE(shell("fragsim check --baseline base.json --update run.pickle && "
                  "fragsim replay run.pickle --report json=before.json && cp before.json after.json",
                {.folder = folder.path(), .input = "/dev/null", .variables = {}, .terminal = false, .output = ""})
                .status == 0);
}

void check_runs(const std::string& command) {
    TempFolder folder;
    furnish(folder);
    Surroundings surroundings;
    surroundings.folder = folder.path();
    const Ended ended = shell(command, surroundings);
    INFO(command << '\n' << ended.err);
    CHECK(ended.status == 0);
    CHECK_FALSE(ended.out.empty());
}

}  // namespace

TEST_CASE("every example of a help text runs", "[cli][examples]") {
    const std::string overview = fragsim::test::fragsim({"--help"}).out;
    int commands = 0;
    for (const char* name : {"explain", "tune", "inspect", "replay", "compare", "sweep", "check", "verify", "list"}) {
        const auto examples = commands_of_help(fragsim::test::fragsim({name, "--help"}).out);
        INFO("fragsim " << name << " --help");
        CHECK(overview.find(name) != std::string::npos);
        CHECK_FALSE(examples.empty());
        for (const std::string& command : examples) check_runs(command), ++commands;
    }
    CHECK(commands >= 5);
}

TEST_CASE("every command of the README runs", "[cli][examples]") {
    const std::string readme = source_dir() + "/README.md";
    if (!std::filesystem::exists(readme)) {
        WARN("there is no README.md yet");
        return;
    }
    const auto commands = commands_of_markdown(read_file(readme));
    CHECK_FALSE(commands.empty());
    for (const std::string& command : commands) check_runs(command);
}
