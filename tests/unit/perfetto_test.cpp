// A tiny replay as trace events, letter by letter; tests/reports/perfetto_test.py has the format's rules on real ones.
#include "lib/report/report.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/script.hpp"

using namespace fragsim;
using namespace fragsim::test;

namespace {

// Of `direct`, which asks the driver for everything.
std::string rendered(Trace trace) {
    Recording recording;
    recording.path = "made by hand";
    recording.traces.push_back(std::move(trace));
    RunOptions options;
    options.limits.capacity = 10 * kMiB;
    options.record_series = true;
    ResultSet set;
    set.traces.push_back({&recording, &recording.traces.front(),
        {run_policy(recording.traces.front(), parse_policy_spec("direct", policies()), options)}});
    for (DriverCall& call : set.traces[0].results[0].driver_calls) call.modelled_ns = 1500, call.address = 0x7f00;
    for (const ReportInfo& report : reports())
        if (report.name == "perfetto") return report.render(set, {});
    return "";
}

const std::string kHead = R"({"displayTimeUnit":"ns","traceEvents":[
{"name":"process_name","ph":"M","pid":1,"tid":0,"ts":0,"args":{"name":"direct"}},
{"name":"process_sort_index","ph":"M","pid":1,"tid":0,"ts":0,"args":{"sort_index":1}},
{"name":"thread_name","ph":"M","pid":1,"tid":11,"ts":0,"args":{"name":"driver calls"}},
{"name":"thread_sort_index","ph":"M","pid":1,"tid":11,"ts":0,"args":{"sort_index":1}},
{"name":"thread_name","ph":"M","pid":1,"tid":12,"ts":0,"args":{"name":"requests"}},
{"name":"thread_sort_index","ph":"M","pid":1,"tid":12,"ts":0,"args":{"sort_index":2}},
)";

}  // namespace

TEST_CASE("with times, events are at theirs and driver calls as long as modelled", "[unit][perfetto]") {
    Trace trace = script("a 0 4M; a 1 20M; f 0");
    trace.time_us = {5000, 5001, 5700};
    CHECK(rendered(trace) == kHead + R"({"name":"reserved","ph":"C","pid":1,"ts":0,"args":{"bytes":4194304}},
{"name":"allocated","ph":"C","pid":1,"ts":0,"args":{"bytes":4194304}},
{"name":"requested","ph":"C","pid":1,"ts":0,"args":{"bytes":4194304}},
{"name":"malloc","ph":"X","pid":1,"tid":11,"ts":0.0,"dur":1.5,"args":{"op":0,"bytes":4194304,"address":"0x7f00","stream":0,"modelled_us":1.5}},
{"name":"out of memory","ph":"i","s":"t","pid":1,"tid":12,"ts":1.0,"args":{"op":1,"requested_bytes":20971520,"reserved_bytes":4194304,"largest_free_bytes":0,"cause":"capacity"}},
{"name":"reserved","ph":"C","pid":1,"ts":700,"args":{"bytes":0}},
{"name":"allocated","ph":"C","pid":1,"ts":700,"args":{"bytes":0}},
{"name":"requested","ph":"C","pid":1,"ts":700,"args":{"bytes":0}},
{"name":"free","ph":"X","pid":1,"tid":11,"ts":700.0,"dur":1.5,"args":{"op":2,"bytes":4194304,"address":"0x7f00","stream":0,"modelled_us":1.5}}
]}
)");
}

TEST_CASE("without times an op is a microsecond", "[unit][perfetto]") {
    CHECK(rendered(script("a 0 4M; f 0")) ==
          kHead + R"({"name":"reserved","ph":"C","pid":1,"ts":0,"args":{"bytes":4194304}},
{"name":"allocated","ph":"C","pid":1,"ts":0,"args":{"bytes":4194304}},
{"name":"requested","ph":"C","pid":1,"ts":0,"args":{"bytes":4194304}},
{"name":"malloc","ph":"X","pid":1,"tid":11,"ts":0.0,"dur":1.0,"args":{"op":0,"bytes":4194304,"address":"0x7f00","stream":0,"modelled_us":1.5}},
{"name":"reserved","ph":"C","pid":1,"ts":1,"args":{"bytes":0}},
{"name":"allocated","ph":"C","pid":1,"ts":1,"args":{"bytes":0}},
{"name":"requested","ph":"C","pid":1,"ts":1,"args":{"bytes":0}},
{"name":"free","ph":"X","pid":1,"tid":11,"ts":1.0,"dur":1.0,"args":{"op":1,"bytes":4194304,"address":"0x7f00","stream":0,"modelled_us":1.5}}
]}
)");
}
