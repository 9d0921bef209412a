#include "apps/fragsim/sweep_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "apps/fragsim/output_file.hpp"
#include "lib/core/error.hpp"
#include "lib/report/sweep_line.hpp"

namespace fragsim {
namespace {

constexpr const char* kAnother = "give another file, or --force to begin it anew";

[[noreturn]] void fail(const std::string& path, const char* what) {
    throw Error(ErrorCode::environment, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno)),
        "check the folder, its permissions and the space left");
}

}  // namespace

void SweepStdout::put(std::size_t run, const std::string& line) {
    waiting_.emplace(run, line);
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_; first = waiting_.begin()) {
        write_stdout(first->second + '\n');
        waiting_.erase(first);
        ++next_;
    }
}

SweepFile::SweepFile(std::string path, bool force, const std::vector<std::string>& keys)
    : path_(std::move(path)), lines_(keys.size()) {
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) fail(path_, "write");
    try {
        if (flock(file_, LOCK_EX | LOCK_NB) != 0)
            throw Error(ErrorCode::usage, fmt::format("{}: another sweep is writing it", path_), "wait for its end");
        Runs runs;
        for (std::size_t run = 0; run < keys.size(); ++run) runs.emplace(keys[run], run);
        if (!force) read(runs);
        if (lseek(file_, 0, SEEK_END) != end_ && ftruncate(file_, end_) != 0) fail(path_, "write");
    } catch (...) {
        close(file_);
        throw;
    }
}

SweepFile::~SweepFile() { close(file_); }

void SweepFile::read(const Runs& runs) {
    std::ifstream in(path_, std::ios::binary);
    if (!in) fail(path_, "read");
    std::int64_t number = 0;
    for (std::string line; std::getline(in, line);) {
        if (!in.eof()) {
            keep(line, ++number, runs);
            continue;
        }
        // The last line has no end: cut off in mid-write, if it is one of ours at all.
        const bool ours = line.starts_with(kSweepLineBegin) || kSweepLineBegin.starts_with(line);
        if (!ours) throw Error(ErrorCode::usage, fmt::format("{} exists and is not a sweep's", path_), kAnother);
    }
}

void SweepFile::keep(const std::string& line, std::int64_t number, const Runs& runs) {
    const std::optional<SweepLine> found = read_sweep_line(line);
    if (!found)
        throw Error(
            ErrorCode::usage, fmt::format("{}:{}: exists and is not a line of a sweep", path_, number), kAnother);
    if (found->tool_version != FRAGSIM_VERSION)
        throw Error(ErrorCode::usage,
            fmt::format("{}:{}: a run of fragsim {}, this is {}", path_, number, found->tool_version, FRAGSIM_VERSION),
            kAnother);
    const auto run = runs.find(found->key);
    if (run == runs.end())
        throw Error(ErrorCode::usage, fmt::format("{}:{}: holds a run that is not one of this sweep", path_, number),
            "a sweep may grow, not shrink: keep the old values and traces, or give another file, or --force");
    if (has(run->second))
        throw Error(ErrorCode::usage, fmt::format("{}:{}: holds a run twice", path_, number), kAnother);
    lines_[run->second] = {end_, static_cast<std::int64_t>(line.size()) + 1};
    end_ += lines_[run->second].length;
    surviving += found->survives;
}

void SweepFile::put(std::size_t run, const std::string& line) {
    const std::string text = line + '\n';
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t wrote =
            pwrite(file_, text.data() + done, text.size() - done, end_ + static_cast<std::int64_t>(done));
        if (wrote < 0 && errno != EINTR) fail(path_, "write");
        if (wrote > 0) done += static_cast<std::size_t>(wrote);
    }
    lines_[run] = {end_, static_cast<std::int64_t>(text.size())};
    end_ += lines_[run].length;
}

bool SweepFile::in_order() const {
    std::int64_t offset = 0;
    for (const Line& line : lines_) {
        if (line.offset != offset) return false;
        offset += line.length;
    }
    return true;
}

void SweepFile::finish(bool quiet) {
    if (in_order()) return;
    OutputFile ordered(path_, true);
    std::string text;
    for (const Line& line : lines_) {
        text.resize(static_cast<std::size_t>(line.length));
        if (pread(file_, text.data(), text.size(), line.offset) != line.length) fail(path_, "read");
        ordered.write(text);
    }
    ordered.commit(quiet);
}

}  // namespace fragsim
