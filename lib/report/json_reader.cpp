#include "lib/report/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"
#include "lib/trace/input.hpp"

namespace fragsim {
namespace {

// Where the parser is, and the keys it has seen in the objects around.
class KeyWatch {
public:
    // As nlohmann's parser calls back.
    void operator()(Json::parse_event_t event, const Json& parsed) {
        using Event = Json::parse_event_t;
        switch (event) {
            case Event::object_start: levels_.push_back({true, {}, {}, 0}); break;
            case Event::array_start: levels_.push_back({false, {}, {}, 0}); break;
            case Event::key:
                levels_.back().key = parsed.get<std::string>();
                if (!levels_.back().keys.insert(levels_.back().key).second && twice_.empty()) twice_ = place();
                break;
            case Event::object_end:
            case Event::array_end:
                levels_.pop_back();
                if (!levels_.empty() && !levels_.back().object) ++levels_.back().index;
                break;
            case Event::value:
                if (levels_.size() == 2 && levels_[0].key == "schema" && levels_[1].key == "name" && parsed.is_string())
                    schema_ = parsed.get<std::string>();
                if (!levels_.empty() && !levels_.back().object) ++levels_.back().index;
                break;
        }
    }
    std::string place() const {
        std::string place;
        for (const Level& level : levels_)
            place += level.object ? (place.empty() ? "" : ".") + level.key : fmt::format("[{}]", level.index);
        return place;
    }
    const std::string& twice() const { return twice_; }  // the place of the first key that is there twice; "": none is
    const std::string& schema() const { return schema_; }  // the value of schema.name

private:
    struct Level {
        bool object;
        std::set<std::string> keys;
        std::string key;
        std::size_t index;
    };
    std::vector<Level> levels_;
    std::string twice_, schema_;
};

std::string line_and_column(std::string_view text, std::size_t offset) {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return fmt::format("line {}, column {}", line, before.size() - line_start + 1);
}

}  // namespace

Json parse_json(const std::string& text, const std::string& file, const std::string& hint) {
    KeyWatch watch;
    Json document;
    try {
        document = Json::parse(text, [&](int, Json::parse_event_t event, Json& parsed) {
            watch(event, parsed);
            return true;
        });
    } catch (const Json::parse_error& fault) {
        const bool cut = fault.byte > text.size();
        throw Error(ErrorCode::input,
            fmt::format("{}: {}: {}", file, line_and_column(text, cut ? text.size() : fault.byte - 1),
                cut ? "the document ends too early" : "this is not JSON"),
            hint);
    } catch (const Json::out_of_range&) {
        throw Error(
            ErrorCode::input, fmt::format("{}: {}: a number too large for anything", file, watch.place()), hint);
    }
    if (!watch.twice().empty())
        throw Error(ErrorCode::input, fmt::format("{}: {} is there twice", file, watch.twice()), "keep one of them");
    return document;
}

void JsonReader::refuse(const std::string& what) const {
    throw Error(ErrorCode::input, fmt::format("{}: {}{}{}", about_->file, place_, place_.empty() ? "" : ": ", what),
        about_->hint);
}

void JsonReader::expect(bool holds, const char* kind) const {
    if (!holds) refuse(fmt::format("expected {}, found {}", kind, value_->type_name()));
}

JsonReader JsonReader::member(const std::string& key, const Json& value) const {
    return {value, about_, place_.empty() ? key : place_ + "." + key};
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
    expect(value_->is_object(), "an object");
    const auto found = value_->find(std::string(key));
    if (found == value_->end() || found->is_null()) return {};
    return member(std::string(key), *found);
}

JsonReader JsonReader::at(std::string_view key) const {
    const auto found = find(key);
    if (!found) refuse(fmt::format("'{}' is missing", key));
    return *found;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::members() const {
    expect(value_->is_object(), "an object");
    std::vector<std::pair<std::string, JsonReader>> all;
    for (const auto& [key, value] : value_->items()) all.emplace_back(key, member(key, value));
    return all;
}

std::vector<JsonReader> JsonReader::elements() const {
    expect(value_->is_array(), "an array");
    std::vector<JsonReader> all;
    for (std::size_t i = 0; i < value_->size(); ++i)
        all.push_back({(*value_)[i], about_, fmt::format("{}[{}]", place_, i)});
    return all;
}

std::string JsonReader::text() const {
    expect(value_->is_string(), "a string");
    return value_->get<std::string>();
}

std::int64_t JsonReader::integer(std::int64_t least, std::int64_t most) const {
    expect(value_->is_number(), "an integer");
    const bool fits = value_->is_number_unsigned()
                          ? value_->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}
                          : value_->is_number_integer();
    if (!fits || value_->get<std::int64_t>() < least)
        refuse(fmt::format("expected an integer from {} on, found {}", least, value_->dump()));
    if (value_->get<std::int64_t>() > most)
        refuse(fmt::format("expected an integer of at most {}, found {}", most, value_->dump()));
    return value_->get<std::int64_t>();
}

double JsonReader::number() const {
    expect(value_->is_number(), "a number");
    return value_->get<double>();
}

bool JsonReader::flag() const {
    expect(value_->is_boolean(), "true or false");
    return value_->get<bool>();
}

void JsonReader::only(std::initializer_list<std::string_view> names) const {
    for (const auto& [key, value] : members())
        if (std::find(names.begin(), names.end(), key) == names.end())
            refuse(fmt::format("unknown key '{}'; {}", key, suggestion(key, names)));
}

int check_schema(const JsonReader& document, std::string_view name) {
    const JsonReader schema = document.at("schema");
    if (schema.at("name").text() != name)
        schema.refuse(fmt::format("this is a {}, not a {}", schema.at("name").text(), name));
    const std::string version = schema.at("version").text();
    if (version.starts_with("1.")) return 1;
    if (version.starts_with("2.")) return 2;
    schema.at("version").refuse(fmt::format("version {} is not known here, 1 and 2 are", version));
}

bool begins_like_ours(std::string_view text) {
    // Members that may stand before "schema" when a tool has sorted them.
    static constexpr std::array kOurs{"schema", "tool", "argv", "trace", "traces", "results", "entries", "baseline",
        "candidate", "command", "summary", "tolerances"};
    const std::size_t brace = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (brace == std::string_view::npos || text[brace] != '{') return false;
    const std::size_t open = text.find('"', brace), close = text.find('"', open + 1);
    if (close == std::string_view::npos) return false;
    return std::find(kOurs.begin(), kOurs.end(), text.substr(open + 1, close - open - 1)) != kOurs.end();
}

std::string schema_name(std::string_view text) {
    KeyWatch watch;
    [[maybe_unused]] const Json document = Json::parse(
        text,
        [&](int, Json::parse_event_t event, Json& parsed) {
            watch(event, parsed);
            return true;
        },
        false);
    return watch.schema();
}

}  // namespace fragsim
