#include "lib/report/page_data.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <map>

#include "lib/core/error.hpp"
#include "lib/core/sizes.hpp"
#include "lib/report/explanation.hpp"
#include "lib/report/format.hpp"
#include "lib/report/result_table.hpp"
#include "lib/report/setting_words.hpp"
#include "lib/study/inspect.hpp"
#include "lib/study/memory_map.hpp"
#include "lib/trace/call_site.hpp"

namespace fragsim {
namespace {

constexpr std::uint32_t kMapOps = 4000, kMapBefore = 3000;  // ops of a memory map, and those before its moment

template <class Number>
Json differences(const std::vector<Number>& values) {
    Json json = Json::array();
    Number last = 0;
    for (const Number value : values) {
        json.push_back(value - last);
        last = value;
    }
    return json;
}

// One time an op.
std::vector<std::int64_t> op_times(const Trace& trace) {
    std::vector<std::int64_t> times;
    times.reserve(trace.ops);
    for (std::size_t event = 0; event < trace.events.size(); ++event)
        if (is_op(trace.events[event].kind())) times.push_back(trace.time_us[event]);
    return times;
}

// Call sites of a trace, numbered as they come up.
class Sites {
public:
    explicit Sites(const Trace& trace) : trace_(trace) {}

    std::int64_t number(BufferId buffer) {
        const StackId stack = trace_.buffers[buffer.value].stack;
        if (!stack) return -1;
        const auto [known, is_new] = by_stack_.emplace(stack, 0);
        if (is_new) known->second = by_name_.emplace(call_site(trace_, stack), by_name_.size()).first->second;
        return static_cast<std::int64_t>(known->second);
    }
    Json names() const {
        std::vector<std::string_view> names(by_name_.size());
        for (const auto& [name, number] : by_name_) names[number] = name;
        return names;
    }

private:
    const Trace& trace_;
    std::map<StackId, std::size_t> by_stack_;
    std::map<std::string, std::size_t> by_name_;
};

Json json_map(const char* moment, std::uint32_t op, const Trace& trace, const Result& result, Sites& sites) {
    const std::uint32_t ops = result.outcome.ops;
    const std::uint32_t first = std::min(op > kMapBefore ? op - kMapBefore : 0, ops > kMapOps ? ops - kMapOps : 0);
    const MemoryMap map = memory_map(trace, result, first, std::min(first + kMapOps, ops));
    const auto until = [](std::uint32_t at) { return at == MemoryMap::kNever ? -1 : std::int64_t{at}; };
    struct Columns {
        std::vector<std::int64_t> address, bytes, requested, begin, let_go, end, site;
    } ranges, segments, blocks;
    for (const MemoryMap::Range& range : map.ranges) {
        ranges.address.push_back(static_cast<std::int64_t>(range.address));
        ranges.bytes.push_back(range.bytes);
    }
    for (const MemoryMap::Segment& segment : map.segments) {
        segments.address.push_back(static_cast<std::int64_t>(segment.address));
        segments.bytes.push_back(segment.bytes);
        segments.begin.push_back(segment.begin);
        segments.end.push_back(until(segment.end));
    }
    for (const MemoryMap::Block& block : map.blocks) {
        blocks.address.push_back(static_cast<std::int64_t>(block.address));
        blocks.bytes.push_back(block.bytes);
        blocks.requested.push_back(trace.buffers[block.buffer.value].requested);
        blocks.begin.push_back(block.from_start ? -1 : std::int64_t{block.begin});
        blocks.let_go.push_back(until(block.let_go));
        blocks.end.push_back(until(block.end));
        blocks.site.push_back(sites.number(block.buffer));
    }
    return {{"moment", moment}, {"op", op}, {"first_op", map.first_op}, {"end_op", map.end_op},
        {"ranges", {{"address", differences(ranges.address)}, {"bytes", ranges.bytes}}},
        {"segments", {{"address", differences(segments.address)}, {"bytes", segments.bytes}, {"begin", segments.begin},
                         {"end", segments.end}}},
        {"blocks", {{"address", differences(blocks.address)}, {"bytes", blocks.bytes}, {"requested", blocks.requested},
                       {"begin", differences(blocks.begin)}, {"let_go", blocks.let_go}, {"end", blocks.end},
                       {"site", blocks.site}}}};
}

Json json_policy(const Trace& trace, const Result& result, Sites& sites) {
    Json ooms = Json::array();
    for (const Oom& oom : result.ooms)
        ooms.push_back({{"op", oom.op}, {"requested", oom.requested}, {"largest_free", oom.largest_free},
            {"cause", name(oom.cause)}});
    Json recorded = Json::array();
    for (const RecordedOomAnswer& oom : result.recorded_ooms)
        recorded.push_back({{"op", oom.op}, {"requested", oom.requested}, {"served", oom.served}});
    const Series& series = result.series;
    Json json{{"label", result.label}, {"survives", result.survives()}, {"failures", result.failures()}, {"ooms", ooms}, {"recorded_ooms", recorded},
        {"retries", series.retries}};
    if (!result.card.empty()) json["card"] = result.card;
    if (series.size() == 0) return json;
    json["series"] = {{"requested", differences(series.requested)}, {"allocated", differences(series.allocated)},
        {"active", differences(series.active)}, {"reserved", differences(series.reserved)},
        {"largest_free", differences(series.largest_free)}};
    json["maps"] = Json::array({json_map("peak of reserved memory", peak_op(series), trace, result, sites)});
    const auto refused = std::find_if(result.recorded_ooms.begin(), result.recorded_ooms.end(),
        [](const RecordedOomAnswer& oom) { return !oom.served; });
    if (!result.ooms.empty())
        json["maps"].push_back(json_map("first out of memory", result.ooms.front().op, trace, result, sites));
    else if (refused != result.recorded_ooms.end())
        json["maps"].push_back(json_map("recorded out of memory", refused->op, trace, result, sites));
    return json;
}

std::string verdict(const Result& result) {
    const std::string peak = format_size(result.count("reserved_bytes.all.peak"));
    if (result.survives()) return fmt::format("{}: survives, {} reserved at the peak", result.label, peak);
    const std::string times =
        result.failures() == 1 ? "once" : fmt::format("{} times", format_count(result.failures()));
    std::string out = fmt::format("{}: out of memory {}", result.label, times);
    if (result.left_out > 0)
        out += fmt::format("; {} of the buffers that were live at the start have no room, and {} reserved at the peak "
                           "is without them",
            format_count(result.left_out), peak);
    if (result.ooms.empty())
        return result.left_out > 0 ? out
                                   : fmt::format("{}, where the recorded run did; {} reserved at the peak", out, peak);
    const Oom& oom = result.ooms.front();
    return fmt::format(
        "{}, first at op {}: {} asked for, {} reserved, {} of it free, the largest free range {}; cause: {}", out,
        format_count(oom.op), format_size(oom.requested), format_size(oom.reserved), format_size(oom.free_total),
        format_size(oom.largest_free), name(oom.cause));
}

Json json_table(const TextTable& table) {
    Json json{{"columns", Json::array()}, {"rows", Json::array()}};
    for (const TextTable::Column& column : table.columns()) json["columns"].push_back(column.title);
    for (const auto& row : table.rows()) {
        Json cells = Json::array();
        for (const TextTable::Cell& cell : row) cells.push_back({{"text", cell.text}, {"best", cell.best}});
        json["rows"].push_back(std::move(cells));
    }
    return json;
}

Json json_result_table(const std::vector<Result>& results) {
    std::vector<std::string> labels;
    std::vector<const Result*> rows;
    for (const Result& result : results) labels.push_back(result.label), rows.push_back(&result);
    return json_table(result_table("policy", labels, rows));
}

Json json_explained(const Explanation& explanation) {
    Json json{{"moments", Json::array()}, {"waste", json_table(waste_table(explanation))},
        {"pinners", pinner_lines(explanation.moments.front())}, {"settings", json_table(settings_table(explanation))},
        {"notes", settings_notes(explanation)}, {"recommendation", recommendation(explanation)}};
    for (const Moment& moment : explanation.moments)
        json["moments"].push_back({{"sentence", verdict_sentence(moment)}, {"arithmetic", arithmetic(moment)}});
    return json;
}

Json json_page_trace(const TraceResults& on_trace) {
    const Trace& trace = *on_trace.trace;
    const Recording& recording = *on_trace.recording;
    Json json{{"path", recording.path}, {"format", recording.format}, {"device", trace.device}, {"ops", trace.ops},
        {"completeness", describe(trace.completeness)}, {"policies", Json::array()}};
    if (on_trace.explanation) json["explanation"] = json_explained(*on_trace.explanation);
    if (!trace.time_us.empty()) json["time_us"] = differences(op_times(trace));
    if (on_trace.results.empty()) return json;
    const Result& first = on_trace.results.front();
    if (const auto bound = first.limits.bound()) json["bound"] = *bound;
    json["limits"] = describe(first.limits);
    json["needed"] = summarize(trace).load;
    if (const std::string start = start_words(first.start_from); !start.empty()) json["starts"] = start;
    for (const Result& result : on_trace.results) json["verdict"].push_back(verdict(result));
    json["recorded_ooms"] = recorded_oom_lines(on_trace.results);
    json["table"] = json_result_table(on_trace.results);
    Sites sites(trace);
    for (const Result& result : on_trace.results) json["policies"].push_back(json_policy(trace, result, sites));
    json["sites"] = sites.names();
    return json;
}

std::string base64(const std::vector<unsigned char>& bytes) {
    static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t k = 0; k < 3; ++k)
            three = three << 8 | (i + k < bytes.size() ? bytes[i + k] : std::uint32_t{0});
        for (int shift = 18; shift >= 0; shift -= 6) out += kDigits[three >> shift & 63];
    }
    const std::size_t over = bytes.size() % 3;
    if (over > 0) out.replace(out.size() - (3 - over), 3 - over, 3 - over, '=');
    return out;
}

}  // namespace

Json page_data(const ResultSet& set) {
    Json json{{"version", set.tool_version}, {"traces", Json::array()}};
    for (const TraceResults& on_trace : set.traces) json["traces"].push_back(json_page_trace(on_trace));
    return json;
}

std::string packed(const Json& document) {
    const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
    uLongf size = compressBound(static_cast<uLong>(text.size()));
    std::vector<unsigned char> bytes(size);
    const int status = compress2(bytes.data(), &size, reinterpret_cast<const Bytef*>(text.data()),
        static_cast<uLong>(text.size()), Z_BEST_COMPRESSION);
    FRAGSIM_ASSERT(status == Z_OK);
    bytes.resize(size);
    return base64(bytes);
}

}  // namespace fragsim
