#include "tests/fuzz/fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fragsim::fuzz::read_any("csv-log", data, size);
    return 0;
}
