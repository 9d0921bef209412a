// Doubtful input: counted by kind with its first position, always shown, an error under --strict. Nothing is skipped
// without being counted here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fragsim {

class Diagnostics {
public:
    struct Entry {
        std::string kind;  // a short phrase: "free of unknown address"
        std::int64_t count = 0;
        std::string first_position;  // "offset 1284", "line 17", "device 0, entry 12"
    };

    void count(std::string_view kind, std::string_view position) {
        for (Entry& entry : entries_)
            if (entry.kind == kind) {
                ++entry.count;
                return;
            }
        entries_.push_back({std::string(kind), 1, std::string(position)});
    }

    bool empty() const { return entries_.empty(); }
    const std::vector<Entry>& entries() const { return entries_; }  // in order of first appearance

private:
    std::vector<Entry> entries_;
};

}  // namespace fragsim
