#include "tests/support/small_programs.hpp"

#include <random>

#include "tests/support/scenario.hpp"

namespace fragsim::test {

Trace small_program(std::uint32_t seed, std::uint16_t streams) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
    Scenario scenario;
    const std::uint32_t ops = 40 + below(60);
    for (std::uint32_t i = 0; i < ops; ++i) {
        const bool frees = below(5) < 2;
        Bytes size = static_cast<Bytes>(1 + below(3000)) * 512;
        if (below(3) > 0) size = static_cast<Bytes>(1 + below(60)) * kMiB + static_cast<Bytes>(below(4)) * 512 * 700;
        scenario.commands.push_back(
            {frees ? Command::free : Command::alloc, below(64), size, static_cast<std::uint16_t>(below(streams))});
    }
    return trace_of(scenario);
}

}  // namespace fragsim::test
