// The runs that a baseline lists, replayed as things are today.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/fragsim/cli.hpp"
#include "lib/core/error.hpp"
#include "lib/study/baseline.hpp"

namespace fragsim {

// Recordings by path, each read once.
class TraceStore {
public:
    explicit TraceStore(const Invocation& invocation) : invocation_(invocation) {}

    // With its hash. Throws Error for one that cannot be read, also when asked again.
    const Recording& get(const std::string& path);

private:
    struct Loaded {
        std::optional<Recording> recording;
        std::optional<Error> error;
    };
    const Invocation& invocation_;
    std::map<std::string, Loaded> loaded_;
};

// What stands in a baseline for a file, and the other way round: paths are relative to the baseline's folder.
std::string path_in_baseline(const std::string& baseline, const std::string& path);
std::string path_from_baseline(const std::string& baseline, const BaselineEntry& entry);

RunName name_of(const std::string& baseline, const BaselineEntry& entry);

struct Replayed {
    std::string sha256;                 // of the trace today
    std::optional<RunFigures> figures;  // none: there are problems
    std::vector<std::string> problems;
};

// By index of `entries`, on `jobs` threads.
std::vector<Replayed> replay_entries(
    const std::string& baseline, const std::vector<BaselineEntry>& entries, TraceStore& traces, int jobs);

}  // namespace fragsim
