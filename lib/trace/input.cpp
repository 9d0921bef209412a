#include "lib/trace/input.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "lib/trace/decompress.hpp"
#include "lib/trace/stored_file.hpp"

namespace fragsim {
namespace {

// Small enough to stay in the second-level cache between being read and being parsed.
constexpr std::size_t kBuffer = 256 * 1024;
// No trace has a single value of this size; a length beyond it is damage.
constexpr std::size_t kMaxFill = std::size_t{256} << 20;
constexpr std::size_t kHead = 4096;

bool looks_like_html(std::string_view head) {
    while (!head.empty() && std::isspace(static_cast<unsigned char>(head.front())) != 0) head.remove_prefix(1);
    std::string start(head.substr(0, 14));
    for (char& letter : start) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return start.starts_with("<!doctype html") || start.starts_with("<html");
}

void refuse_what_is_no_data(std::string_view head, const std::string& name) {
    if (head.starts_with("version https://git-lfs"))
        throw Error(ErrorCode::input, fmt::format("{}: is a Git LFS pointer, not the file itself", name),
            "fetch it with git lfs pull");
    if (looks_like_html(head))
        throw Error(ErrorCode::input, fmt::format("{}: is an HTML page, not a trace", name),
            "download the file itself; a page may be a login or an error message");
}

}  // namespace

Input::Input(const std::string& path, const InputOptions& options) : name_(path == "-" ? "standard input" : path) {
    auto stored = std::make_unique<StoredFile>(path, options);
    stored_ = stored.get();
    const std::string_view head = stored->head();
    if (is_gzip(head))
        source_ = gunzip(std::move(stored), name_);
    else if (is_zstd(head))
        source_ = unzstd(std::move(stored), name_);
    else
        source_ = std::move(stored);

    refuse_what_is_no_data(this->head(), name_);
    if (available() == 0)
        throw Error(ErrorCode::input, fmt::format("{}: nothing but an empty compressed file", name_),
            "record or copy the trace again");
}

Input::Input(std::unique_ptr<ByteSource> source, std::string name)
    : source_(std::move(source)), name_(std::move(name)) {}

Input::~Input() = default;
Input::Input(Input&&) noexcept = default;
Input& Input::operator=(Input&&) noexcept = default;

std::size_t Input::fill(std::size_t count) {
    if (count > kMaxFill)
        throw Error(ErrorCode::input, fmt::format("{}: offset {}: a value of {} bytes", name_, offset(), count),
            "the file is damaged or no trace");
    if (buffer_ == nullptr) grow();

    // Unread bytes go to the front, so that the rest of the buffer takes what comes.
    const std::size_t unread = available();
    if (unread < count && cursor_ != buffer_.get()) {
        std::memmove(buffer_.get(), cursor_, unread);
        cursor_ = buffer_.get();
        end_ = cursor_ + unread;
    }
    while (available() < count && !at_end_) {
        if (available() == capacity_) grow();
        const auto used = static_cast<std::size_t>(end_ - buffer_.get());
        const std::size_t got = source_->read(reinterpret_cast<std::byte*>(buffer_.get()) + used, capacity_ - used);
        at_end_ = got == 0;
        end_ += got;
        offset_of_end_ += got;
    }
    return available();
}

// A larger buffer; what is unread begins at its front.
void Input::grow() {
    const std::size_t unread = available();
    const std::size_t capacity = std::max(kBuffer, 2 * capacity_);
    std::unique_ptr<unsigned char[]> larger(new unsigned char[capacity + kReadAhead]);
    if (unread > 0) std::memcpy(larger.get(), cursor_, unread);
    std::memset(larger.get() + capacity, 0, kReadAhead);
    buffer_ = std::move(larger);
    capacity_ = capacity;
    cursor_ = buffer_.get();
    end_ = cursor_ + unread;
}

std::string Input::sha256() { return stored_ != nullptr ? stored_->finish_hash() : std::string(); }

std::string_view Input::head() {
    const std::size_t count = std::min(fill(kHead), kHead);
    return {reinterpret_cast<const char*>(cursor_), count};
}

std::string read_text(const std::string& path) {
    Input input(path);
    std::string text;
    while (const std::size_t count = input.fill(1)) {
        text.append(reinterpret_cast<const char*>(input.data()), count);
        input.advance(count);
    }
    return text;
}

}  // namespace fragsim
