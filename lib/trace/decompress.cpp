#include "lib/trace/decompress.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include "lib/core/error.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kStoredBuffer = 128 * 1024;

// The compressed side: a buffer that is refilled when it has been used up.
class StoredBytes {
public:
    StoredBytes(std::unique_ptr<ByteSource> source, std::string name)
        : source_(std::move(source)), name_(std::move(name)), buffer_(new std::byte[kStoredBuffer]) {}

    // Unread bytes, at least one unless the source has ended.
    bool refill() {
        if (begin_ == end_) {
            begin_ = 0;
            end_ = source_->read(buffer_.get(), kStoredBuffer);
            total_ += end_;
        }
        return begin_ != end_;
    }
    std::byte* data() { return buffer_.get() + begin_; }
    std::size_t size() const { return end_ - begin_; }
    void advance(std::size_t count) { begin_ += count; }

    [[noreturn]] void fail(std::string_view what, std::string_view hint) const {
        throw Error(
            ErrorCode::input, fmt::format("{}: stored offset {}: {}", name_, total_ - size(), what), std::string(hint));
    }
    [[noreturn]] void fail_truncated(std::string_view kind) const {
        fail(fmt::format("the {} data ends in the middle", kind), "the file is incomplete: copy it again");
    }

private:
    std::unique_ptr<ByteSource> source_;
    std::string name_;
    std::unique_ptr<std::byte[]> buffer_;
    std::size_t begin_ = 0, end_ = 0;
    std::uint64_t total_ = 0;
};

class GzipSource final : public ByteSource {
public:
    GzipSource(std::unique_ptr<ByteSource> stored, std::string name) : stored_(std::move(stored), std::move(name)) {
        constexpr int kGzipOnly = 16;
        if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK)
            throw Error(ErrorCode::environment, "cannot start zlib");
    }
    GzipSource(const GzipSource&) = delete;
    GzipSource& operator=(const GzipSource&) = delete;
    ~GzipSource() override { inflateEnd(&stream_); }

    std::size_t read(std::byte* into, std::size_t capacity) override {
        const auto room = static_cast<uInt>(std::min<std::size_t>(capacity, std::numeric_limits<uInt>::max()));
        stream_.next_out = reinterpret_cast<Bytef*>(into);
        stream_.avail_out = room;
        while (stream_.avail_out == room && step()) {}
        return room - stream_.avail_out;
    }

private:
    // One call of inflate; false at the end of the data.
    bool step() {
        if (!stored_.refill()) {
            if (inside_member_) stored_.fail_truncated("gzip");
            return false;
        }
        if (!inside_member_ && !begin_member()) return false;

        const auto given = static_cast<uInt>(stored_.size());
        stream_.next_in = reinterpret_cast<Bytef*>(stored_.data());
        stream_.avail_in = given;
        const int result = inflate(&stream_, Z_NO_FLUSH);
        stored_.advance(given - stream_.avail_in);
        if (result == Z_STREAM_END) {
            inside_member_ = false;
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            stored_.fail(fmt::format("damaged gzip data ({})", stream_.msg != nullptr ? stream_.msg : "no dictionary"),
                "copy the file again, or test it with gzip -t");
        }
        return true;
    }

    // After the last member only padding with zeros may follow, as tapes and block devices leave it.
    bool begin_member() {
        if (members_++ > 0) {
            while (stored_.refill() && *stored_.data() == std::byte{0}) stored_.advance(1);
            if (!stored_.refill()) return false;
            inflateReset(&stream_);
        }
        inside_member_ = true;
        return true;
    }

    StoredBytes stored_;
    z_stream stream_{};
    bool inside_member_ = false;
    std::uint64_t members_ = 0;
};

class ZstdSource final : public ByteSource {
public:
    ZstdSource(std::unique_ptr<ByteSource> stored, std::string name)
        : stored_(std::move(stored), std::move(name)), stream_(ZSTD_createDStream()) {
        if (stream_ == nullptr) throw Error(ErrorCode::environment, "cannot start zstd");
    }
    ZstdSource(const ZstdSource&) = delete;
    ZstdSource& operator=(const ZstdSource&) = delete;
    ~ZstdSource() override { ZSTD_freeDStream(stream_); }

    std::size_t read(std::byte* into, std::size_t capacity) override {
        ZSTD_outBuffer out{into, capacity, 0};
        while (out.pos == 0) {
            const bool more = stored_.refill();
            // At the end of the input one more call hands out what the decoder still holds.
            if (!more && !inside_frame_) return 0;
            ZSTD_inBuffer in{stored_.data(), stored_.size(), 0};
            const std::size_t result = ZSTD_decompressStream(stream_, &out, &in);
            stored_.advance(in.pos);
            if (ZSTD_isError(result) != 0)
                stored_.fail(fmt::format("damaged zstd data ({})", ZSTD_getErrorName(result)),
                    "copy the file again, or test it with zstd -t");
            inside_frame_ = result != 0;
            if (!more && inside_frame_ && out.pos == 0) stored_.fail_truncated("zstd");
        }
        return out.pos;
    }

private:
    StoredBytes stored_;
    ZSTD_DStream* stream_;
    bool inside_frame_ = false;
};

}  // namespace

bool is_gzip(std::string_view head) { return head.starts_with("\x1f\x8b"); }

bool is_zstd(std::string_view head) {
    using namespace std::string_view_literals;
    // A frame, or one of the sixteen kinds of skippable frame.
    return head.starts_with("\x28\xb5\x2f\xfd"sv) ||
           (head.size() >= 4 && (static_cast<unsigned char>(head[0]) & 0xf0) == 0x50 &&
               head.substr(1, 3) == "\x2a\x4d\x18"sv);
}

std::unique_ptr<ByteSource> gunzip(std::unique_ptr<ByteSource> stored, std::string name) {
    return std::make_unique<GzipSource>(std::move(stored), std::move(name));
}

std::unique_ptr<ByteSource> unzstd(std::unique_ptr<ByteSource> stored, std::string name) {
    return std::make_unique<ZstdSource>(std::move(stored), std::move(name));
}

}  // namespace fragsim
