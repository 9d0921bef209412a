// For every rule of the auditor a policy that breaks it, and nothing else.
#include "lib/replay/auditor.hpp"

#include <algorithm>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/children.hpp"
#include "tests/support/fake_policy.hpp"
#include "tests/support/playback.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// The rules that an audit of the script found broken, after `sabotage` changed the honest policy.
std::set<AuditRule> audit(
    const char* calls, const std::function<void(FakePolicy&)>& sabotage, std::optional<Bytes> capacity = {}) {
    const MakePolicy make = [&](const PolicyContext& context) {
        auto policy = std::make_unique<FakePolicy>(context.device);
        sabotage(*policy);
        return policy;
    };
    Playback play(script(calls), make, {{capacity, {}}, {}, capacity});
    play.run();
    INFO(describe(play.auditor.findings()));
    std::set<AuditRule> rules;
    for (const AuditFinding& finding : play.auditor.findings()) {
        CHECK_FALSE(finding.what.empty());
        rules.insert(finding.rule);
    }
    return rules;
}

std::set<AuditRule> only(AuditRule rule) { return {rule}; }

constexpr const char* kTwo = "a 0 4096; a 1 4096; f 0; f 1";

}  // namespace

TEST_CASE("an honest policy passes the audit", "[unit][auditor]") {
    CHECK(audit(
        "a 0 4096; a 1 100; f 0; a 2 4096; r 1 5; f 1; a 3 1; c 1; f 2", [](FakePolicy&) {}, 4 * kMiB)
              .empty());
}

TEST_CASE("the auditor finds buffers that overlap in part", "[unit][auditor]") {
    CHECK(audit(kTwo, [](FakePolicy& policy) {
        policy.after_allocate = [](FakePolicy& self, BufferId buffer, Placement& placement) {
            if (buffer.value == 1) placement.address = self.segment(0) + 512;
        };
    }) == only(AuditRule::overlap));
}

TEST_CASE("the auditor finds two buffers at one address and survives their frees", "[unit][auditor]") {
    const auto both_at_one_place = [](FakePolicy& policy) {
        policy.after_allocate = [](FakePolicy& self, BufferId, Placement& placement) {
            placement.address = self.segment(0);
        };
    };
    REQUIRE(comes_back([&] { audit(kTwo, both_at_one_place); }));
    CHECK(audit(kTwo, both_at_one_place) == only(AuditRule::overlap));
}

TEST_CASE("the auditor finds memory handed out while a stream may still use it", "[unit][auditor]") {
    CHECK(audit("a 0 4096; f 0; a 1 4096; f 1; c 0", [](FakePolicy& policy) {
        policy.after_allocate = [](FakePolicy& self, BufferId buffer, Placement& placement) {
            if (buffer.value == 1) placement.address = self.segment(0) + 2048;
        };
    }) == only(AuditRule::overlap));
}

TEST_CASE("the auditor finds buffers outside the memory got from the device", "[unit][auditor]") {
    // Behind the second segment, or across the end of the first.
    for (const Bytes offset : {4 * FakePolicy::kSegment, FakePolicy::kSegment - 2048})
        CHECK(audit("a 0 4096; f 0", [&](FakePolicy& policy) {
            policy.after_allocate = [&](FakePolicy& self, BufferId, Placement& placement) {
                placement.address = std::max(self.segment(0), self.segment(1)) + static_cast<Address>(offset);
            };
        }) == only(AuditRule::not_reserved));
}

TEST_CASE("the auditor finds addresses that are not aligned", "[unit][auditor]") {
    CHECK(audit("a 0 4096; f 0", [](FakePolicy& policy) {
        policy.after_allocate = [](FakePolicy&, BufferId, Placement& placement) { placement.address += 256; };
    }) == only(AuditRule::misaligned));
}

TEST_CASE("the auditor finds buffers that are too small", "[unit][auditor]") {
    CHECK(audit("a 0 4097; f 0", [](FakePolicy&) {}) == only(AuditRule::too_small));
}

TEST_CASE("the auditor finds more reserved than allowed", "[unit][auditor]") {
    CHECK(audit(
              kTwo, [](FakePolicy&) {}, 4 * kMiB - 1) == only(AuditRule::over_capacity));
}

TEST_CASE("the auditor finds statistics that do not add up", "[unit][auditor]") {
    const auto lie = GENERATE(
        +[](AllocatorStats& said) { said.reserved_bytes.all.increase(1); },
        +[](AllocatorStats& said) { said.requested_bytes.all.increase(1); },
        +[](AllocatorStats& said) { said.active_bytes.all.decrease(1); },
        +[](AllocatorStats& said) { said.inactive_split_bytes.all.increase(4 * kMiB); });
    CHECK(audit("a 0 4096", [&](FakePolicy& policy) { policy.lie = lie; }) == only(AuditRule::wrong_statistics));
}

TEST_CASE("the auditor finds a segment released with a buffer in it", "[unit][auditor]") {
    CHECK(audit("a 0 4096; a 1 4096; f 1; f 0", [](FakePolicy& policy) {
        policy.after_free = [](FakePolicy& self, BufferId buffer) {
            if (buffer.value == 1) self.release(0);
        };
    }) == only(AuditRule::released_in_use));
}

TEST_CASE("the auditor accepts a segment released once nothing is in it", "[unit][auditor]") {
    CHECK(audit(kTwo, [](FakePolicy& policy) {
        policy.after_free = [](FakePolicy& self, BufferId buffer) {
            if (buffer.value == 1) self.release(0), self.release(1);
        };
    }).empty());
}

TEST_CASE("the auditor finds a picture whose blocks do not tile or do not add up", "[unit][auditor]") {
    const auto spoil = GENERATE(
        +[](MemoryPicture& picture) { picture.blocks[0].address += 512; },   // a gap
        +[](MemoryPicture& picture) { picture.blocks.back().size -= 512; },  // not filled
        +[](MemoryPicture& picture) {
            picture.blocks.back().state = BlockState::active_allocated;
        },                                                                                // nothing lives there
        +[](MemoryPicture& picture) { picture.blocks[0].state = BlockState::inactive; },  // a live one is missing
        +[](MemoryPicture& picture) { picture.segments.pop_back(); });                    // less than reserved
    CHECK(audit("a 0 4096; a 1 4096", [&](FakePolicy& policy) {
        policy.draw = [&](MemoryPicture& picture) {
            if (!picture.segments.empty()) spoil(picture);
        };
    }) == only(AuditRule::bad_picture));
}

TEST_CASE("every rule of the auditor has a name of its own", "[unit][auditor]") {
    std::set<std::string> names;
    for (int rule = 0; rule <= static_cast<int>(AuditRule::bad_picture); ++rule)
        names.insert(name(static_cast<AuditRule>(rule)));
    CHECK(names.size() == static_cast<std::size_t>(AuditRule::bad_picture) + 1);
    CHECK_FALSE(names.contains(""));
}
