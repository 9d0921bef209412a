// Where the lines of a sweep go: a file that keeps every finished run, or stdout.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fragsim {

// Not safe for several threads at once.
class SweepOutput {
public:
    virtual ~SweepOutput() = default;
    virtual bool has(std::size_t run) const = 0;                     // from an earlier start
    virtual void put(std::size_t run, const std::string& line) = 0;  // a finished run; without a line end
    virtual void finish(bool quiet) = 0;                             // every run is there
    std::size_t surviving = 0;                                       // of the runs that were there at the start
};

// Lines in order: what is finished early waits.
class SweepStdout final : public SweepOutput {
public:
    bool has(std::size_t) const override { return false; }
    void put(std::size_t run, const std::string& line) override;
    void finish(bool) override {}

private:
    std::size_t next_ = 0;
    std::map<std::size_t, std::string> waiting_;
};

// A line is in the file with one write as soon as its run is finished, in any order. finish() puts them in order, aside
// and then under the file's name, so that the bytes do not tell how often the sweep was stopped.
class SweepFile final : public SweepOutput {
public:
    // `keys`: of every run, by index. Keeps the runs that the file holds, drops a last line that was not written to its
    // end. Throws Error(usage) for a file that is not a sweep's, holds other runs, or that another sweep writes; with
    // `force` it is begun anew.
    SweepFile(std::string path, bool force, const std::vector<std::string>& keys);
    ~SweepFile() override;
    SweepFile(const SweepFile&) = delete;
    SweepFile& operator=(const SweepFile&) = delete;

    bool has(std::size_t run) const override { return lines_[run].length > 0; }
    void put(std::size_t run, const std::string& line) override;
    void finish(bool quiet) override;

private:
    struct Line {
        std::int64_t offset = 0, length = 0;  // with its line end; 0: not there
    };
    using Runs = std::unordered_map<std::string_view, std::size_t>;  // index by key
    void read(const Runs& runs);
    void keep(const std::string& line, std::int64_t number, const Runs& runs);
    bool in_order() const;

    std::string path_;
    int file_ = -1;
    std::int64_t end_ = 0;
    std::vector<Line> lines_;  // by run
};

}  // namespace fragsim
