// The address model against recorded cudaMalloc programs: every address relative to the first.
#include <fmt/format.h>

#include <utility>

#include "lib/device/cuda_malloc_addresses.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/truth.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

// Returns how many addresses were compared.
int compare(const std::string& path) {
    CudaMallocAddresses model(CudaMallocAddresses::Start::fresh);
    struct Block {
        Address modelled;
        Bytes bytes;
    };
    std::vector<Block> blocks;
    Address shift = 0;  // recorded - modelled, the same for all
    int compared = 0;
    bool header = true;
    for_each_line(path, [&](const std::string& line) {
        if (std::exchange(header, false) && line.starts_with("op")) return;
        const std::vector<std::string> field = split(line, ',');
        const std::size_t id = std::stoul(field[1]);
        if (field[0] == "A") {
            const Bytes bytes = std::stoll(field[2]);
            const Address recorded = std::stoull(field[3]);
            if (recorded == 0) return;  // out of memory: leaves no trace
            const Address modelled = model.malloc(bytes);
            if (blocks.empty()) shift = recorded - modelled;
            if (blocks.size() <= id) blocks.resize(id + 1);
            blocks[id] = {modelled, bytes};
            INFO(path << ": allocation " << id << " of " << bytes << " bytes");
            REQUIRE(modelled + shift == recorded);
            ++compared;
        } else if (field[0] == "F") {
            model.free(blocks[id].modelled, blocks[id].bytes);
        }
    });
    return compared;
}

}  // namespace

TEST_CASE("the address model gives every relative address of a recorded cudaMalloc program", "[differential][device]") {
    CHECK(compare(source_dir() + "/tests/data/va.seg.1.csv.gz") > 400);
    CHECK(compare(source_dir() + "/tests/data/va.any.1.csv.gz") > 400);
}

TEST_CASE("the address model gives every relative address of all recorded cudaMalloc programs",
    "[differential][device][shared]") {
    for (const char* kind : {"seg", "any"})
        for (int seed = 1; seed <= 4; ++seed)
            if (const auto file = shared_file(fmt::format("truth/va/va.{}.{}.csv.gz", kind, seed)))
                CHECK(compare(*file) > 400);
}
