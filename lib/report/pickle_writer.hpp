// Writes a pickle of protocol 2 with the opcodes that PyTorch's own viewer accepts (spec/pytorch-snapshot-format.md,
// sections 1.2 and 12). The caller nests the calls as the data is nested.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fragsim {

class PickleWriter {
public:
    PickleWriter() : out_("\x80\x02") {}

    void begin_dict() { out_ += "}("; }
    void end_dict() { out_ += 'u'; }
    void begin_list() { out_ += "]("; }
    void end_list() { out_ += 'e'; }
    // Between the items of a long list: no more than 1000 items may lie between two of these.
    void continue_list() { out_ += "e("; }

    void text(std::string_view value);  // the second time a reference
    void integer(std::int64_t value);
    void boolean(bool value) { out_ += value ? '\x88' : '\x89'; }
    void real(double value);
    void pair(std::int64_t first, std::int64_t second);

    // The object written last gets a number, by which it can be written again.
    std::uint32_t remember();
    void again(std::uint32_t number);

    void field(std::string_view key, std::int64_t value) { text(key), integer(value); }
    void field(std::string_view key, std::string_view value) { text(key), text(value); }

    std::string finish() { return std::move(out_) + '.'; }

private:
    void bytes(std::uint64_t value, int count);  // little-endian

    std::string out_;
    std::map<std::string, std::uint32_t, std::less<>> texts_;
    std::uint32_t next_ = 0;
};

}  // namespace fragsim
