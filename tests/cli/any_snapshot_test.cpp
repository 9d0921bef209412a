// No command dies on any snapshot: whatever is missing from one, it ends with an answer or with a reason.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"

using namespace fragsim::test;
using nlohmann::json;

namespace {

constexpr std::int64_t kBase = 0x7f0000000000, kMi = 1 << 20;

json entry(const char* action, std::int64_t offset, std::int64_t size) {
    return {{"action", action}, {"addr", kBase + offset}, {"size", size}, {"stream", 0}, {"time_us", 1}};
}
json segment(const char* state, int device = 0) {
    const json used = {{"size", 12 * kMi}, {"requested_size", 12 * kMi}, {"state", state}};
    const json rest = {{"size", 8 * kMi}, {"requested_size", 0}, {"state", "inactive"}};
    const json whole = {{"size", 20 * kMi}, {"requested_size", 0}, {"state", "inactive"}};
    return {{"device", device}, {"address", kBase}, {"total_size", 20 * kMi}, {"stream", 0}, {"segment_type", "large"},
        {"blocks", std::string(state) == "inactive" ? json::array({whole}) : json::array({used, rest})}};
}

// One run, and what is left when parts of its recording are taken away.
std::map<std::string, json> cuts() {
    const json alloc = entry("alloc", 0, 12 * kMi), grow = entry("segment_alloc", 0, 20 * kMi),
               request = entry("free_requested", 0, 12 * kMi), complete = entry("free_completed", 0, 12 * kMi),
               release = entry("segment_free", 64 * kMi, 20 * kMi), snapshot = entry("snapshot", 0, 0);
    const json failed = {{"action", "oom"}, {"device_free", 0}, {"size", 30 * kMi}, {"stream", 0}};
    const json of_nothing = {{"action", "oom"}, {"device_free", 0}, {"size", 0}, {"stream", 0}};
    const json full = {grow, alloc, request, complete}, none = json::array();
    const json free = segment("inactive"), used = segment("active_allocated"), pending = segment("active_pending_free");
    json bare = free;
    bare["blocks"] = none;
    const auto document = [](json segments, json histories) {
        return json{{"segments", std::move(segments)}, {"device_traces", std::move(histories)}};
    };
    const auto list = [](auto... items) { return json::array({items...}); };
    return {{"full", document(list(free), list(full))}, {"nothing", document(none, none)},
        {"no entries", document(none, list(none))}, {"a picture", document(list(used), list(none))},
        {"only snapshot", document(list(free), list(list(snapshot)))},
        {"only segment_free", document(list(free), list(list(release)))},
        {"only segment_free, no picture", document(none, list(list(release)))},
        {"only segment_alloc", document(list(free), list(list(grow)))},
        {"only free", document(list(free), list(list(complete)))},
        {"pending at the end", document(list(pending), list(list(snapshot)))},
        {"no blocks", document(list(bare), list(full))}, {"no segments", document(none, list(full))},
        {"only out of memory", document(none, list(list(failed)))},
        {"out of memory for nothing", document(list(used), list(list(of_nothing)))},
        {"alloc of nothing", document(list(free), list(list(entry("alloc", 0, 0))))},
        {"two devices", document(list(used, segment("inactive", 1)), list(list(grow, alloc), list(failed)))},
        {"the second device", document(list(segment("inactive", 1)), list(none, full))}};
}

void check_lives(const std::string& path) {
    const std::vector<std::vector<std::string>> commands = {{"inspect", path}, {"inspect", path, "--json"},
        {"replay", path, "--audit"}, {"replay", path, "--report", "detail"},
        {"compare", path, "--policy", "caching", "--policy", "expandable", "--policy", "bfc", "--policy", "planner"},
        {"tune", path, "--capacity", "64MiB"}, {"explain", path}, {"explain", path, "--json", "--capacity", "64MiB"},
        {"verify", path}, {"convert", path},
        {"sweep", path, "--axis", "caching.max_split_size_mb=[32,64]"}};
    for (const std::vector<std::string>& command : commands) {
        const Ended ended = fragsim::test::fragsim(command);
        INFO(fmt::format("fragsim {} ended with {}: {}", fmt::join(command, " "), ended.status, ended.err));
        CHECK((ended.status == 0 || ended.status == 1 || ended.status == 3));
    }
}

}  // namespace

TEST_CASE("no command dies on a snapshot of which parts are missing", "[cli][any-snapshot]") {
    const TempFolder folder;
    for (const auto& [name, document] : cuts()) {
        INFO(name);
        const std::string path = folder.path() + "/cut.json";
        write_file(path, document.dump());
        check_lives(path);
    }
}

TEST_CASE("no command dies on what strangers' files showed", "[cli][any-snapshot][shared]") {
    const auto folder = shared_file("cases/found");
    if (!folder) return;
    for (const auto& file : std::filesystem::directory_iterator(*folder))
        if (file.path().extension() != ".md") check_lives(file.path().string());
}
