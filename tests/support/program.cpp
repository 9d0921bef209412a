#include "tests/support/program.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/support/truth.hpp"

namespace fragsim::test {
namespace {

namespace fs = std::filesystem;

// Where `fragsim` is found under that name.
std::string program_folder() { return fs::path(FRAGSIM_PROGRAM).parent_path(); }

void redirect(int descriptor, const std::string& path, int flags) {
    const int file = open(path.c_str(), flags, 0600);
    if (file < 0 || dup2(file, descriptor) < 0) _exit(127);
}

}  // namespace

TempFolder::TempFolder() : path_((fs::temp_directory_path() / "fragsim_test_XXXXXX").string()) {
    if (!mkdtemp(path_.data())) throw std::runtime_error("no temporary folder");
}
TempFolder::~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}
std::vector<std::string> TempFolder::files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    return content.str();
}
void write_file(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
}
std::string sample(const std::string& name) { return source_dir() + "/traces/samples/" + name + ".pickle.gz"; }

Running::Running(const std::vector<std::string>& command, const Surroundings& around)
    : out_file_(around.output.empty() ? folder_ / "out" : around.output) {
    std::string terminal_name;
    if (around.terminal) {
        terminal_ = posix_openpt(O_RDWR | O_NOCTTY);
        if (terminal_ < 0 || grantpt(terminal_) != 0 || unlockpt(terminal_) != 0)
            throw std::runtime_error("no terminal");
        terminal_name = ptsname(terminal_);
    }
    std::vector<std::string> variables{"PATH=" + program_folder() + ":/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C"};
    for (const auto& [name, value] : around.variables) variables.push_back(name + "=" + value);
    const auto pointers = [](const std::vector<std::string>& words) {
        std::vector<char*> all;
        for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
        all.push_back(nullptr);
        return all;
    };
    const std::vector<char*> arguments = pointers(command), environment = pointers(variables);
    const std::string err_file = folder_ / "err", folder = around.folder.empty() ? source_dir() : around.folder;

    child_ = fork();
    if (child_ < 0) throw std::runtime_error("cannot start a process");
    if (child_ > 0) return;
    if (chdir(folder.c_str()) != 0) _exit(127);
    redirect(STDIN_FILENO, around.input, O_RDONLY);
    if (around.terminal)
        redirect(STDOUT_FILENO, terminal_name, O_RDWR);
    else
        redirect(STDOUT_FILENO, out_file_, O_WRONLY | O_CREAT | O_TRUNC);
    redirect(STDERR_FILENO, err_file, O_WRONLY | O_CREAT | O_TRUNC);
    execve(arguments.front(), arguments.data(), environment.data());
    _exit(127);
}

Running::~Running() {
    if (child_ > 0) wait();
    if (terminal_ >= 0) close(terminal_);
}

void Running::signal(int number) { kill(child_, number); }

Ended Running::wait() {
    Ended ended{};
    if (terminal_ >= 0) {
        char buffer[4096];
        for (ssize_t got; (got = read(terminal_, buffer, sizeof buffer)) > 0;)
            ended.out.append(buffer, static_cast<std::size_t>(got));
    }
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (terminal_ < 0 && fs::is_regular_file(out_file_)) ended.out = read_file(out_file_);
    ended.err = read_file(folder_ / "err");
    return ended;
}

Ended fragsim(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
    std::vector<std::string> command{FRAGSIM_PROGRAM};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return Running(command, surroundings).wait();
}

Ended shell(const std::string& line, const Surroundings& surroundings) {
    return Running({"/bin/sh", "-c", line}, surroundings).wait();
}

}  // namespace fragsim::test
