// Bytes of a trace file: a file or standard input, gzip and zstd opened transparently (recognised by content), read in
// pieces so that memory does not grow with the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace fragsim {

// Where uncompressed bytes come from.
class ByteSource {
public:
    virtual ~ByteSource() = default;
    // Fills up to `capacity` bytes and returns how many; 0 only at the end. Throws Error(input) on damaged data.
    virtual std::size_t read(std::byte* into, std::size_t capacity) = 0;
};

// `done` bytes of `total` of the file as stored (total 0: unknown, a pipe).
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct InputOptions {
    Progress progress;
    bool hash = false;  // compute the SHA-256 of the bytes as stored while they are read
};

class StoredFile;

class Input {
public:
    // `path` "-" is standard input. Throws Error(input) if it cannot be opened, is empty, or is not data at all
    // (a folder, a Git LFS pointer, an HTML page).
    explicit Input(const std::string& path, const InputOptions& options = {});
    Input(std::unique_ptr<ByteSource> source, std::string name);  // for tests and fuzzing
    ~Input();
    Input(Input&&) noexcept;
    Input& operator=(Input&&) noexcept;

    const std::string& name() const { return name_; }

    // Unread bytes at hand: [data(), data() + available()). Valid until the next fill(). Another kReadAhead bytes
    // behind them may be read without harm; they mean nothing.
    static constexpr std::size_t kReadAhead = 32;
    const unsigned char* data() const { return cursor_; }
    std::size_t available() const { return static_cast<std::size_t>(end_ - cursor_); }
    void advance(std::size_t count) { cursor_ += count; }

    // Makes at least `count` bytes available if the input still has them; returns available(). Moves what is unread.
    // Memory grows with the bytes that are there, not with `count`; throws Error(input) when `count` is absurd.
    std::size_t fill(std::size_t count);

    // Position of data() from the beginning of the uncompressed content.
    std::uint64_t offset() const { return offset_of_end_ - available(); }

    // Lower-case hex over all stored bytes (reads what is left); "" unless asked for. To be called once, at the end.
    std::string sha256();

    // The first bytes without consuming them, at most 4 KiB: for recognising formats.
    std::string_view head();

private:
    void grow();

    std::unique_ptr<ByteSource> source_;
    StoredFile* stored_ = nullptr;  // the innermost part of source_ when that reads a file
    std::string name_;
    std::unique_ptr<unsigned char[]> buffer_;
    std::size_t capacity_ = 0;
    const unsigned char* cursor_ = nullptr;
    const unsigned char* end_ = nullptr;
    std::uint64_t offset_of_end_ = 0;
    bool at_end_ = false;
};

// All of a file, or of standard input ("-"), uncompressed. Throws Error(input).
std::string read_text(const std::string& path);

}  // namespace fragsim
