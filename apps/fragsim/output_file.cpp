#include "apps/fragsim/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "apps/fragsim/terminal.hpp"
#include "lib/core/error.hpp"

namespace fragsim {
namespace {

// Names of unfinished files, where a signal handler can reach them. The names belong to living OutputFiles.
std::array<const char* volatile, 8> unfinished;

void interrupted(int) {
    for (const char* volatile name : unfinished)
        if (name) unlink(name);
    _exit(130);
}

[[noreturn]] void cannot_write(const std::string& path) {
    throw Error(ErrorCode::environment, fmt::format("{}: cannot write: {}", path, std::strerror(errno)),
        "check the folder, its permissions and the space left");
}

}  // namespace

OutputFile::OutputFile(std::string path, bool force) : path_(std::move(path)) {
    if (path_ == "-") {
        file_ = stdout;
        return;
    }
    if (!force && std::filesystem::exists(path_))
        throw Error(ErrorCode::usage, fmt::format("{} exists", path_), "give --force to overwrite it");
    aside_ = fmt::format("{}.{}.part", path_, getpid());
    file_ = std::fopen(aside_.c_str(), "wb");
    if (!file_) cannot_write(path_);
    for (auto& slot : unfinished)
        if (!slot) {
            slot = aside_.c_str();
            break;
        }
}

OutputFile::~OutputFile() {
    if (aside_.empty()) return;
    if (file_) std::fclose(file_);
    unlink(aside_.c_str());  // gone already when it was committed
    for (auto& slot : unfinished)
        if (slot == aside_.c_str()) slot = nullptr;
}

void OutputFile::write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) cannot_write(path_);
}

void OutputFile::commit(bool quiet) {
    if (std::fflush(file_) != 0) cannot_write(path_);
    if (path_ == "-") return;
    const bool closed = std::fclose(file_) == 0;
    file_ = nullptr;
    if (!closed || std::rename(aside_.c_str(), path_.c_str()) != 0) cannot_write(path_);
    if (!quiet) fmt::print(stderr, "wrote {}\n", path_);
}

void write_stdout(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        cannot_write("standard output");
}

void install_interrupt_handler() {
    struct sigaction action {};
    action.sa_handler = interrupted;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

}  // namespace fragsim
