#include <cstdio>
#include <filesystem>
#include <fstream>

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "lib/trace/input.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/traces_support.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// A file that is gone when the test ends.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& content) {
        static int count = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("fragsim_input_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
        std::ofstream(path_, std::ios::binary) << content;
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() { std::filesystem::remove(path_); }
    std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

std::string gzip(const std::string& plain) {
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&stream, plain.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::string zstd(const std::string& plain) {
    std::string out(ZSTD_compressBound(plain.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), 3));
    return out;
}

std::string read_all(Input& input) {
    std::string out;
    while (input.fill(1) > 0) {
        out.append(reinterpret_cast<const char*>(input.data()), input.available());
        input.advance(input.available());
    }
    return out;
}
std::string read_file(const std::string& content) {
    const TemporaryFile file(content);
    Input input(file.path());
    return read_all(input);
}
std::string error_of_file(const std::string& content) {
    return error_of([&] { read_file(content); });
}

// Larger than every buffer, and compressible.
std::string long_text() {
    std::string out;
    for (long i = 0; out.size() < 2'000'000; ++i) out += std::to_string(i * 7919 % 100003) + ' ';
    return out;
}

}  // namespace

TEST_CASE("a plain file reads as it is", "[unit][trace][input]") {
    const std::string text = long_text();
    CHECK(read_file(text) == text);
    CHECK(read_file("x") == "x");
}

TEST_CASE("compressed files are recognised by content and read as what is in them", "[unit][trace][input]") {
    const std::string text = long_text();
    CHECK(read_file(gzip(text)) == text);
    CHECK(read_file(zstd(text)) == text);
    CHECK(read_file(gzip("one ") + gzip("two")) == "one two");
    CHECK(read_file(zstd("one ") + zstd("two")) == "one two");
    CHECK(read_file(gzip("padded") + std::string(1024, '\0')) == "padded");
}

TEST_CASE("a truncated compressed file is an error that says so", "[unit][trace][input]") {
    const std::string text = long_text();
    for (const std::string& whole : {gzip(text), zstd(text)})
        for (const std::size_t kept : {std::size_t{20}, whole.size() / 2, whole.size() - 1}) {
            const std::string message = error_of_file(whole.substr(0, kept));
            CHECK(contains(message, "ends in the middle"));
            CHECK(contains(message, "stored offset"));
        }
}

TEST_CASE("damaged compressed data is an error", "[unit][trace][input]") {
    std::string gz = gzip(long_text()), zs = zstd(long_text());
    gz[gz.size() / 2] = static_cast<char>(gz[gz.size() / 2] ^ 0x55);
    zs[10] = static_cast<char>(zs[10] ^ 0x55);
    CHECK(contains(error_of_file(gz), "damaged gzip"));
    CHECK(contains(error_of_file(zs), "damaged zstd"));
    CHECK(contains(error_of_file(gzip("x") + "tail"), "damaged gzip"));
}

TEST_CASE("what is no data at all is refused with its name", "[unit][trace][input]") {
    CHECK(contains(
        error_of_file("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), "Git LFS pointer"));
    CHECK(contains(error_of_file("\n <!DOCTYPE html><html>"), "HTML page"));
    CHECK(contains(error_of_file(gzip("<html>")), "HTML page"));
    CHECK(contains(error_of_file(""), "is empty"));
    CHECK(contains(error_of_file(gzip("")), "empty"));
    CHECK(contains(error_of([] { Input(std::filesystem::temp_directory_path().string()); }), "folder"));
    CHECK(contains(error_of([] { Input("/no/such/file"); }), "/no/such/file: cannot open: No such file"));
}

TEST_CASE("the hash is over the stored bytes, read or not", "[unit][trace][input]") {
    const TemporaryFile file("abc");
    Input input(file.path(), {.progress = {}, .hash = true});
    CHECK(input.sha256() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    Input unasked(file.path());
    CHECK(unasked.sha256().empty());
}

TEST_CASE("progress counts stored bytes up to the size of the file", "[unit][trace][input]") {
    const std::string stored = gzip(long_text());
    const TemporaryFile file(stored);
    std::uint64_t done = 0, total = 0;
    Input input(
        file.path(), {.progress = [&](std::uint64_t d, std::uint64_t t) { done = d, total = t; }, .hash = false});
    read_all(input);
    CHECK(done == stored.size());
    CHECK(total == stored.size());
}

TEST_CASE("filling keeps what is unread, counts the offset and stops at the end", "[unit][trace][input]") {
    Input input = input_of("0123456789", 3);
    CHECK(input.head() == "0123456789");
    CHECK(input.offset() == 0);
    input.advance(4);
    CHECK(input.fill(100) == 6);
    CHECK(input.offset() == 4);
    CHECK(std::string(reinterpret_cast<const char*>(input.data()), 6) == "456789");
}

TEST_CASE("a large request grows the buffer only with the bytes that are there", "[unit][trace][input]") {
    const std::string text = long_text();
    Input input = input_of(text, 1000);
    input.fill(10);
    input.advance(5);
    CHECK(input.fill(200'000'000) == text.size() - 5);
    CHECK(std::string(reinterpret_cast<const char*>(input.data()), input.available()) == text.substr(5));
    CHECK(contains(error_of([&] { input.fill(std::size_t{1} << 40); }), "offset 5: a value of"));
}
