// Replays the corpus as ordinary tests. Files are in corpus/FORMAT/; what once crashed a reader stays there.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz_reader.hpp"
#include "tests/support/catch.hpp"

using namespace fragsim;

namespace {

std::vector<std::filesystem::path> files_of(std::string_view format) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry :
        std::filesystem::directory_iterator(std::filesystem::path(FRAGSIM_SOURCE_DIR) / "tests/fuzz/corpus" / format))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}
std::string content_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("every file of the corpus reads to a trace or to an error", "[fuzz][readers]") {
    for (const FormatInfo& format : trace_formats()) {
        INFO(format.name);
        const auto files = files_of(format.name);
        REQUIRE_FALSE(files.empty());
        for (const auto& file : files) {
            const std::string bytes = content_of(file);
            CHECK_NOTHROW(
                fuzz::read_any(format.name, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
        }
    }
}

TEST_CASE("one snapshot in every protocol reads to one trace", "[fuzz][readers]") {
    std::string first;
    int protocols = 0;
    for (const auto& file : files_of("pytorch-snapshot")) {
        if (!file.filename().string().starts_with("protocol_")) continue;
        INFO(file.string());
        const Recording recording = read_recording(file.string());
        REQUIRE(recording.traces.size() == 2);
        const std::string text = write_text(recording.traces[0]) + write_text(recording.traces[1]);
        if (first.empty()) first = text;
        CHECK(text == first);
        CHECK(recording.traces[0].frames.size() == 2);
        ++protocols;
    }
    CHECK(protocols == 7);
}
