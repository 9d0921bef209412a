// The real program in a process of its own: status, stdout and stderr apart.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace fragsim::test {

// A folder that goes away with this.
class TempFolder {
public:
    TempFolder();
    ~TempFolder();
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;

    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    std::vector<std::string> files() const;  // names, sorted

private:
    std::string path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);
std::string sample(const std::string& name);  // a recording of traces/samples: "oom.default"

struct Surroundings {
    std::string folder;                                          // to run in; empty: the repository's root
    std::string input = "/dev/null";                             // file that stdin reads
    std::vector<std::pair<std::string, std::string>> variables;  // beside PATH and HOME, nothing is inherited
    bool terminal = false;                                       // stdout is one
    std::string output;                                          // file that stdout writes to instead
};

struct Ended {
    int status;  // 128 + signal when a signal ended it
    std::string out, err;
};

class Running {
public:
    // `program` and its arguments.
    Running(const std::vector<std::string>& command, const Surroundings& surroundings);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    void signal(int number);
    Ended wait();

private:
    TempFolder folder_;
    pid_t child_ = -1;
    int terminal_ = -1;
    std::string out_file_;
};

// fragsim with these arguments.
Ended fragsim(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});
// A line of a shell that finds `fragsim`.
Ended shell(const std::string& line, const Surroundings& surroundings = {});

}  // namespace fragsim::test
