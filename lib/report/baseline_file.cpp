#include "lib/report/baseline_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/core/limits.hpp"
#include "lib/report/figures_reader.hpp"
#include "lib/report/json_parts.hpp"
#include "lib/trace/input.hpp"

namespace fragsim {
namespace {

constexpr const char* kHint = "fragsim check --baseline FILE --update TRACE... --policy NAME writes one";

// What a parser of the command line refuses is bad input here.
template <class Parse>
void check_with(const JsonReader& json, Parse&& parse) {
    try {
        parse();
    } catch (const Error& error) {
        json.refuse(error.hint().empty() ? error.what() : fmt::format("{}; {}", error.what(), error.hint()));
    }
}

Tolerances read_tolerances(const std::optional<JsonReader>& json) {
    Tolerances tolerances;
    if (!json) return tolerances;
    for (const auto& [key, value] : json->members()) {
        const std::string text = value.text();
        check_with(value, [&, &key = key] { check_tolerance(key, text); });
        tolerances.emplace_back(key, text);
    }
    return tolerances;
}

Course read_course(const std::string& key, const JsonReader& json) {
    json.only({"changes", "points"});
    Course course{key, json.at("changes").integer(), {}};
    for (const JsonReader& pair : json.at("points").elements()) {
        const std::vector<JsonReader> values = pair.elements();
        if (values.size() != 2) pair.refuse("expected an op and a value");
        const Course::Point point{read_op(values[0]), values[1].integer()};
        if (!course.points.empty() && (point.op <= course.points.back().op || point.value < course.points.back().value))
            pair.refuse("ops and values have to rise");
        course.points.push_back(point);
    }
    return course;
}

RunFigures read_figures(const JsonReader& json) {
    const JsonReader ooms = json.at("ooms"), recorded = json.at("recorded_ooms");
    for (const JsonReader& oom : ooms.elements()) oom.only({"op", "requested_bytes", "cause"});
    for (const JsonReader& oom : recorded.elements()) oom.only({"op", "requested_bytes", "served"});
    RunFigures figures;
    figures.metrics = read_metrics(json.at("metrics"));
    figures.ooms = read_ooms(ooms);
    figures.oom_count = json.at("oom_count").integer();
    figures.recorded_ooms = read_recorded_ooms(recorded);
    for (const auto& [key, value] : json.at("courses").members()) figures.courses.push_back(read_course(key, value));
    return figures;
}

BaselineEntry read_entry(const JsonReader& json, int version) {
    json.only({"trace", "sha256", "gpu", "policy", "capacity", "memory_limit", "tolerances", "metrics", "oom_count", "ooms",
        "recorded_ooms", "courses"});
    BaselineEntry entry;
    entry.trace = json.at("trace").text();
    entry.sha256 = json.at("sha256").text();
    if (const auto gpu = json.find("gpu")) entry.gpu = read_gpu(*gpu);
    entry.policy = json.at("policy").text();
    if (const auto capacity = json.find("capacity")) {
        entry.capacity = capacity->text();
        check_with(*capacity, [&] { parse_limits(entry.capacity, ""); });
    }
    if (const auto memory_limit = json.find("memory_limit")) {
        entry.memory_limit = memory_limit->text();
        check_with(*memory_limit, [&] { parse_limits(entry.capacity, entry.memory_limit); });
    }
    if (capacity_was_memory_limit(version, entry.policy)) std::swap(entry.capacity, entry.memory_limit);
    entry.tolerances = read_tolerances(json.find("tolerances"));
    entry.figures = read_figures(json);
    return entry;
}

// A figure that another machine gets too: without the digits that depend on how sums are rounded.
Json json_value(const Metric& metric) {
    if (const auto* whole = std::get_if<std::int64_t>(&metric.value)) return *whole;
    return std::stod(fmt::format("{:.12g}", std::get<double>(metric.value)));
}

Json json_tolerances(const Tolerances& tolerances) {
    Json json = Json::object();
    for (const auto& [key, text] : tolerances) json[key] = text;
    return json;
}

Json json_entry(const BaselineEntry& entry) {
    Json metrics = Json::object(), ooms = Json::array(), recorded = Json::array(), courses = Json::object();
    for (const Metric& metric : entry.figures.metrics) metrics[metric.key] = json_value(metric);
    for (const RunFigures::OomAt& oom : entry.figures.ooms)
        ooms.push_back({{"op", oom.op}, {"requested_bytes", oom.requested}, {"cause", oom.cause}});
    for (const RecordedOomAnswer& oom : entry.figures.recorded_ooms)
        recorded.push_back({{"op", oom.op}, {"requested_bytes", oom.requested}, {"served", oom.served}});
    for (const Course& course : entry.figures.courses) {
        Json points = Json::array();
        for (const Course::Point& point : course.points) points.push_back(Json::array({point.op, point.value}));
        courses[course.key] = {{"changes", course.changes}, {"points", points}};
    }
    return {{"trace", entry.trace}, {"sha256", entry.sha256}, {"gpu", entry.gpu ? Json(*entry.gpu) : Json()},
        {"policy", entry.policy}, {"capacity", entry.capacity.empty() ? Json() : Json(entry.capacity)},
        {"memory_limit", entry.memory_limit.empty() ? Json() : Json(entry.memory_limit)},
        {"tolerances", json_tolerances(entry.tolerances)}, {"metrics", metrics}, {"oom_count", entry.figures.oom_count},
        {"ooms", ooms}, {"recorded_ooms", recorded}, {"courses", courses}};
}

// A line for every value down to `depth` levels from here; what lies deeper stands on its line.
void append(std::string& out, const Json& json, int depth, const std::string& indent) {
    if (depth == 0 || !json.is_structured() || json.empty()) {
        out += json.dump(-1, ' ', false, Json::error_handler_t::replace);
        return;
    }
    out += json.is_object() ? '{' : '[';
    bool first = true;
    for (const auto& [key, value] : json.items()) {
        out += fmt::format("{}\n{} ", first ? "" : ",", indent);
        if (json.is_object()) out += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
        append(out, value, depth - 1, indent + ' ');
        first = false;
    }
    out += fmt::format("\n{}{}", indent, json.is_object() ? '}' : ']');
}

}  // namespace

Baseline read_baseline(const std::string& path) {
    if (!std::filesystem::exists(path)) throw Error(ErrorCode::input, fmt::format("{}: no such file", path), kHint);
    const Json document = parse_json(read_text(path), path, kHint);
    const JsonReader json(document, path, kHint);
    const int version = check_schema(json, kBaselineSchema);
    json.only({"schema", "tolerances", "entries"});

    Baseline baseline;
    baseline.tolerances = read_tolerances(json.find("tolerances"));
    for (const JsonReader& element : json.at("entries").elements()) {
        BaselineEntry entry = read_entry(element, version);
        for (std::size_t i = 0; i < baseline.entries.size(); ++i)
            if (same_run(baseline.entries[i], entry)) element.refuse(fmt::format("the same run as entries[{}]", i));
        baseline.entries.push_back(std::move(entry));
    }
    if (baseline.entries.empty()) json.at("entries").refuse("nothing to check");
    return baseline;
}

std::string write_baseline(const Baseline& baseline) {
    Json document{{"schema", {{"name", kBaselineSchema}, {"version", kLimitsVersion}}},
        {"tolerances", json_tolerances(baseline.tolerances)}, {"entries", Json::array()}};
    for (const BaselineEntry& entry : baseline.entries) document["entries"].push_back(json_entry(entry));
    std::string text;
    append(text, document, 4, "");
    return text + '\n';
}

}  // namespace fragsim
