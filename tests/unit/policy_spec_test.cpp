// "NAME[:key=value,...]" as --policy takes it.
#include "lib/policy/policy.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/refusal.hpp"

using namespace fragsim;
using test::refusal;

namespace {

const std::vector<PolicyInfo>& known() {
    static const std::vector<PolicyInfo> all = [] {
        std::vector<PolicyInfo> policies(2);
        policies[0].name = "plain";
        policies[0].parameters = {{"steps", "count", "0", ""}, {"speed", "1/s", "7", ""}};
        policies[1].name = "capped";
        policies[1].parameters = {{"cap_mb", "MiB", "", ""}};
        policies[1].required = {"cap_mb"};
        return policies;
    }();
    return all;
}

PolicySpec parse(std::string_view text) { return parse_policy_spec(text, known()); }

}  // namespace

TEST_CASE("a policy's name alone takes every default", "[unit][policy-spec]") {
    const PolicySpec spec = parse("plain");
    CHECK(spec.info->name == "plain");
    CHECK(spec.given.empty());
    CHECK(spec.all_parameters() == Parameters{{"steps", "0"}, {"speed", "7"}});
}

TEST_CASE("given parameters replace defaults and keep the policy's order", "[unit][policy-spec]") {
    const PolicySpec spec = parse("plain:speed=9,steps=2");
    CHECK(spec.given == Parameters{{"speed", "9"}, {"steps", "2"}});
    CHECK(spec.all_parameters() == Parameters{{"steps", "2"}, {"speed", "9"}});
}

TEST_CASE("commas inside brackets belong to the value", "[unit][policy-spec]") {
    CHECK(parse("plain:steps=[256:1,512:2,>:4],speed=1").given ==
          Parameters{{"steps", "[256:1,512:2,>:4]"}, {"speed", "1"}});
}

TEST_CASE("a value may contain colons and equal signs", "[unit][policy-spec]") {
    CHECK(parse("plain:steps=a:b=c").given == Parameters{{"steps", "a:b=c"}});
}

TEST_CASE("the label is what one would write to get the policy again", "[unit][policy-spec]") {
    const char* text = GENERATE("plain", "plain:speed=9", "plain:steps=[1:2,>:4],speed=9", "capped:cap_mb=5");
    CHECK(parse(text).label() == text);
}

TEST_CASE("an unknown policy is answered with the closest one", "[unit][policy-spec]") {
    const auto near = refusal([] { parse("plian:steps=1"); });
    CHECK(near.code == ErrorCode::usage);
    CHECK(near.says("'plian'"));
    CHECK(near.hints("'plain'"));
    const auto far = refusal([] { parse("zzzzzz"); });
    CHECK(far.hints("plain, capped"));
}

TEST_CASE("an unknown parameter is answered with the closest one of that policy", "[unit][policy-spec]") {
    const auto refused = refusal([] { parse("plain:sped=9"); });
    CHECK(refused.says("plain"));
    CHECK(refused.says("'sped'"));
    CHECK(refused.hints("'speed'"));
}

TEST_CASE("a parameter without a value, twice, or empty is refused", "[unit][policy-spec]") {
    CHECK(refusal([] { parse("plain:speed"); }).says("no value"));
    CHECK(refusal([] { parse("plain:speed="); }).says("no value"));
    CHECK(refusal([] { parse("plain:speed=1,speed=2"); }).says("twice"));
    CHECK(refusal([] { parse("plain:"); }).code == ErrorCode::usage);
    CHECK(refusal([] { parse("plain:speed=1,"); }).code == ErrorCode::usage);
    CHECK(refusal([] { parse(""); }).code == ErrorCode::usage);
}

TEST_CASE("a required parameter that is missing is named, with how to write it", "[unit][policy-spec]") {
    const auto refused = refusal([] { parse("capped"); });
    CHECK(refused.code == ErrorCode::usage);
    CHECK(refused.says("cap_mb"));
    CHECK(refused.hints("capped:cap_mb="));
}
