#include "tests/fuzz/fuzz_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fragsim::fuzz::read_any("minimalloc", data, size);
    return 0;
}
