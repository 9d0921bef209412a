#include "lib/report/verification.hpp"

#include "tests/support/catch.hpp"

using namespace fragsim;

TEST_CASE("a result of one device is reported with that device's trace", "[unit][verify]") {
    Recording recording;
    recording.path = "run.pickle";
    recording.traces.resize(2);
    recording.traces[0].inferred_pools = true;
    recording.traces[1].device = 1;
    Verification verification{&recording, "caching", {}};
    verification.results.emplace_back().device = 1;  // the first device was left out
    CHECK(verification_text(verification).find("inferred") == std::string::npos);

    verification.results.front().device = 0;
    CHECK(verification_text(verification).find("memory pools partly inferred") != std::string::npos);
    CHECK(verification_json({verification}, "0", {}).find("\"inferred_pools\": true") != std::string::npos);
}
