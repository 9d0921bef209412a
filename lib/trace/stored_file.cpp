#include "lib/trace/stored_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "lib/core/error.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kHead = 4096;

}  // namespace

StoredFile::StoredFile(const std::string& path, const InputOptions& options)
    : name_(path == "-" ? "standard input" : path), progress_(options.progress) {
    descriptor_ = path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0)
        throw Error(ErrorCode::input, fmt::format("{}: cannot open: {}", name_, std::strerror(errno)),
            "check the path and its permissions");
    try {
        struct stat status {};
        if (::fstat(descriptor_, &status) == 0) {
            if (S_ISDIR(status.st_mode))
                throw Error(
                    ErrorCode::input, fmt::format("{}: is a folder, not a trace", name_), "name the files inside it");
            if (S_ISREG(status.st_mode)) total_ = static_cast<std::uint64_t>(status.st_size);
        }
        if (options.hash) hash_.emplace();

        head_.resize(kHead);
        std::size_t have = 0;
        while (have < kHead) {
            const std::size_t got = read_stored(reinterpret_cast<std::byte*>(head_.data()) + have, kHead - have);
            if (got == 0) break;
            have += got;
        }
        head_.resize(have);
        if (have == 0)
            throw Error(ErrorCode::input, fmt::format("{}: is empty", name_), "record or copy the trace again");
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

StoredFile::~StoredFile() { ::close(descriptor_); }

std::size_t StoredFile::read(std::byte* into, std::size_t capacity) {
    if (head_given_ < head_.size()) {
        const std::size_t count = std::min(capacity, head_.size() - head_given_);
        std::memcpy(into, head_.data() + head_given_, count);
        head_given_ += count;
        return count;
    }
    return read_stored(into, capacity);
}

std::size_t StoredFile::read_stored(std::byte* into, std::size_t capacity) {
    ssize_t got = 0;
    do {
        got = ::read(descriptor_, into, capacity);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        throw Error(
            ErrorCode::input, fmt::format("{}: offset {}: cannot read: {}", name_, done_, std::strerror(errno)));
    const auto count = static_cast<std::size_t>(got);
    done_ += count;
    if (hash_) hash_->update(into, count);
    if (progress_) progress_(done_, total_);
    return count;
}

std::string StoredFile::finish_hash() {
    if (!hash_) return {};
    constexpr std::size_t kBuffer = 64 * 1024;
    const auto rest = std::make_unique<std::byte[]>(kBuffer);
    while (read_stored(rest.get(), kBuffer) > 0) {}
    std::string hex = hash_->finish();
    hash_.reset();
    return hex;
}

}  // namespace fragsim
