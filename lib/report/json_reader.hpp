// Reading JSON documents that people may have edited: nothing is guessed, and every complaint names the file, the place
// and what was expected there.
#pragma once

#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/report/json_parts.hpp"

namespace fragsim {

// One document. Throws Error(input) with line and column when it is damaged, and when an object has a key twice.
Json parse_json(const std::string& text, const std::string& file, const std::string& hint);

// A value and where it stands.
class JsonReader {
public:
    // `document` outlives this; `hint` goes with every complaint.
    JsonReader(const Json& document, std::string file, std::string hint)
        : value_(&document), about_(std::make_shared<const About>(About{std::move(file), std::move(hint)})) {}

    // Each throws Error(input) where the value is of another kind.
    JsonReader at(std::string_view key) const;                   // a member that has to be there
    std::optional<JsonReader> find(std::string_view key) const;  // none: not there, or null
    std::vector<std::pair<std::string, JsonReader>> members() const;
    std::vector<JsonReader> elements() const;
    std::string text() const;
    std::int64_t integer(std::int64_t least = 0, std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
    double number() const;
    bool flag() const;
    // Refuses members with other names, with the nearest of `names`.
    void only(std::initializer_list<std::string_view> names) const;

    const Json& value() const { return *value_; }
    [[noreturn]] void refuse(const std::string& what) const;  // "FILE: PLACE: what"

private:
    struct About {
        std::string file, hint;
    };
    JsonReader(const Json& value, std::shared_ptr<const About> about, std::string place)
        : value_(&value), about_(std::move(about)), place_(std::move(place)) {}
    JsonReader member(const std::string& key, const Json& value) const;
    void expect(bool holds, const char* kind) const;

    const Json* value_;
    std::shared_ptr<const About> about_;
    std::string place_;  // "entries[3].metrics"; "" at the top
};

// Refuses a document that is not `name`, version 1 or 2. Returns the version.
int check_schema(const JsonReader& document, std::string_view name);

// Is the first key of the text one of those that fragsim's documents begin with? The first KiB is enough of it.
bool begins_like_ours(std::string_view text);
// The name in a document's "schema"; "" when there is none. The document may be cut off behind it.
std::string schema_name(std::string_view text);

}  // namespace fragsim
