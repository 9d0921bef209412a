// Counters, driver calls and failures as trace events in JSON, which ui.perfetto.dev opens. A process a policy, those
// of further traces after those of the first. The clock is the recording's, from its first event on; without one an op
// is a microsecond.
//
// Format: "Trace Event Format" of the Chromium project. Microseconds; phases M (names), C (counters), X (slices), i
// (instants). Slices of a thread must nest, so a driver call begins when its op does or when the call before it ended.
// Thread numbers differ between processes, as those of a system do.
#include <fmt/format.h>

#include <algorithm>

#include "lib/report/json_parts.hpp"
#include "lib/report/report.hpp"

namespace fragsim {
namespace {

struct TraceEvent {
    double us;
    std::string text;
};

class ProcessWriter {
public:
    ProcessWriter(int pid, const std::string& name, const Trace& trace, const Result& result)
        : pid_(pid), trace_(trace), result_(result) {
        for (std::size_t event = 0; event < trace.events.size(); ++event)
            if (is_op(trace.events[event].kind()))
                op_us_.push_back(trace.time_us.empty() ? static_cast<double>(op_us_.size())
                                                       : static_cast<double>(trace.time_us[event] - trace.time_us[0]));
        metadata("process_name", 0, {{"name", name}});
        metadata("process_sort_index", 0, {{"sort_index", pid}});
        for (const Thread thread : {driver, requests}) {
            metadata("thread_name", tid(thread), {{"name", thread == driver ? "driver calls" : "requests"}});
            metadata("thread_sort_index", tid(thread), {{"sort_index", static_cast<int>(thread)}});
        }
    }

    std::vector<TraceEvent> write() {
        counter("reserved", result_.series.reserved);
        counter("allocated", result_.series.allocated);
        counter("requested", result_.series.requested);
        driver_calls();
        for (const std::uint32_t op : result_.series.retries) instant(op, "retry", {{"op", op}});
        for (const Oom& oom : result_.ooms)
            instant(oom.op, "out of memory",
                {{"op", oom.op}, {"requested_bytes", oom.requested}, {"reserved_bytes", oom.reserved},
                    {"largest_free_bytes", oom.largest_free}, {"cause", name(oom.cause)}});
        for (const RecordedOomAnswer& oom : result_.recorded_ooms)
            instant(oom.op, "recorded out of memory",
                {{"op", oom.op}, {"requested_bytes", oom.requested}, {"served", oom.served}});
        return std::move(events_);
    }

private:
    enum Thread { driver = 1, requests = 2 };
    int tid(Thread thread) const { return 10 * pid_ + thread; }

    double us(std::uint32_t op) const {  // a call after the last op belongs to its end
        return op_us_.empty() ? 0 : op_us_[std::min<std::size_t>(op, op_us_.size() - 1)];
    }

    void add(double us, const Json& event) {
        events_.push_back({us, event.dump(-1, ' ', false, Json::error_handler_t::replace)});
    }
    void metadata(const char* what, int tid, const Json& arguments) {
        add(0, {{"name", what}, {"ph", "M"}, {"pid", pid_}, {"tid", tid}, {"ts", 0}, {"args", arguments}});
    }
    void instant(std::uint32_t op, const char* what, const Json& arguments) {
        add(us(op), {{"name", what}, {"ph", "i"}, {"s", "t"}, {"pid", pid_}, {"tid", tid(requests)}, {"ts", us(op)},
                        {"args", arguments}});
    }

    void counter(const char* name, const std::vector<Bytes>& values) {
        for (std::uint32_t op = 0; op < values.size(); ++op) {
            if (op > 0 && values[op] == values[op - 1]) continue;
            events_.push_back({us(op), fmt::format(R"({{"name":"{}","ph":"C","pid":{},"ts":{},"args":{{"bytes":{}}}}})",
                                           name, pid_, us(op), values[op])});
        }
    }

    void driver_calls() {
        const std::vector<DriverCall>& calls = result_.driver_calls;
        double free_from = 0;  // the thread is
        for (auto first = calls.begin(); first != calls.end();) {
            const auto last = std::find_if(first, calls.end(), [&](const auto& call) { return call.op != first->op; });
            const auto share = static_cast<double>(last - first);
            for (; first != last; ++first) {
                const double begin = std::max(free_from, us(first->op));
                const double length = trace_.time_us.empty() ? 1 / share : double{first->modelled_ns} / 1000;
                free_from = begin + length;
                add(begin,
                    {{"name", name(first->kind)}, {"ph", "X"}, {"pid", pid_}, {"tid", tid(driver)}, {"ts", begin},
                        {"dur", length},
                        {"args", {{"op", first->op}, {"bytes", first->bytes},
                                     {"address", fmt::format("{:#x}", first->address)}, {"stream", first->stream.value},
                                     {"modelled_us", double{first->modelled_ns} / 1000}}}});
            }
        }
    }

    int pid_;
    const Trace& trace_;
    const Result& result_;
    std::vector<double> op_us_;
    std::vector<TraceEvent> events_;
};

std::string render(const ResultSet& set, const RenderOptions&) {
    std::vector<TraceEvent> events;
    int pid = 0;
    for (const TraceResults& on_trace : set.traces)
        for (const Result& result : on_trace.results) {
            const std::string name =
                set.traces.size() == 1 ? result.label : fmt::format("{}, {}", result.label, on_trace.recording->path);
            std::vector<TraceEvent> more = ProcessWriter(++pid, name, *on_trace.trace, result).write();
            std::move(more.begin(), more.end(), std::back_inserter(events));
        }
    std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.us < b.us; });
    std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (i > 0) out += ",\n";
        out += events[i].text;
    }
    return out + "\n]}\n";
}

}  // namespace

ReportInfo perfetto_report() {
    return {"perfetto", "counters, driver calls and failures as trace events, for ui.perfetto.dev", render,
        {.series = true, .file = true}};
}

}  // namespace fragsim
