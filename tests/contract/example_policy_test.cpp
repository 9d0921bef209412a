// The example of policies/README.md is a policy that works.
#include <fstream>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/script.hpp"
#include "tests/support/truth.hpp"

namespace fragsim {
PolicyInfo power_bins_policy();  // tests/support/example_policy.cpp
}

using namespace fragsim;
using namespace fragsim::test;

namespace {

std::string read_file(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(source_dir() + path).rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("policies/README.md shows the example policy as it is compiled here", "[contract][policy]") {
    const std::string code = read_file("/tests/support/example_policy.cpp");
    REQUIRE_FALSE(code.empty());
    CHECK(read_file("/policies/README.md").find("```cpp\n" + code + "```\n") != std::string::npos);
}

TEST_CASE("the example policy works under the auditor", "[contract][policy]") {
    const PolicyInfo info = power_bins_policy();
    Playback play(script("a 0 700; a 1 3M; a 2 3M; f 1; a 3 4M; f 0; a 4 1K 1; f 2; f 3; f 4; e"),
        [&](const PolicyContext& context) { return info.make({}, context); });
    play.run();
    CHECK(describe(play.auditor.findings()) == "");
    CHECK(play.placements[3]->address == play.placements[1]->address);
    CHECK(play.device.waits() == 1);  // stream 1 gets what stream 0 freed
    CHECK(play.policy->stats().reserved_bytes.all.current == 0);
    CHECK(play.policy->stats().reserved_bytes.all.peak == 1024 + 2 * 4 * kMiB);
}
