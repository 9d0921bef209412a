// The file as it lies on the disk (or comes through a pipe): read in order, counted, hashed on the way.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/core/sha256.hpp"
#include "lib/trace/input.hpp"

namespace fragsim {

class StoredFile final : public ByteSource {
public:
    // Throws Error(input) if it cannot be opened, is a folder, or is empty.
    StoredFile(const std::string& path, const InputOptions& options);
    StoredFile(const StoredFile&) = delete;
    StoredFile& operator=(const StoredFile&) = delete;
    ~StoredFile() override;

    std::size_t read(std::byte* into, std::size_t capacity) override;

    // The first bytes, at most 4 KiB; read() gives them again.
    std::string_view head() const { return {head_.data(), head_.size()}; }

    // Reads what is left; lower-case hex over everything, "" unless options.hash.
    std::string finish_hash();

private:
    std::size_t read_stored(std::byte* into, std::size_t capacity);

    std::string name_;
    int descriptor_ = -1;
    Progress progress_;
    std::optional<Sha256> hash_;
    std::string head_;
    std::size_t head_given_ = 0;
    std::uint64_t done_ = 0, total_ = 0;
};

}  // namespace fragsim
