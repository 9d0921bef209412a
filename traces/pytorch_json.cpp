// Memory snapshots of PyTorch that went through JSON: json.dump of what torch.cuda.memory._snapshot() returns, or of
// the bare list of segments of torch.cuda.memory_snapshot().
//
// JSON has no references, so every call stack is written out wherever a pickle refers to it; the file is 3 to 60 times
// larger. Equal call stacks become one list again as they come by, and everything goes to the same sink as a pickle's
// opcodes. What the snapshot has no use for (a user's own keys beside its own) is checked to be JSON and dropped.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "traces/line_reader.hpp"
#include "traces/pytorch_json_lexer.hpp"
#include "traces/pytorch_records.hpp"
#include "traces/pytorch_schema.hpp"
#include "traces/pytorch_words.hpp"
#include "traces/registry.hpp"

namespace fragsim {
namespace {

constexpr std::size_t kMaxDepth = 1000;             // a snapshot nests six deep; whatever nests deeper is none
constexpr std::uint32_t kMaxContainers = 1u << 28;  // as many as the sink counts
constexpr std::size_t kBatch = 1024;                // items of a list are handed on in batches of this
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Lists that repeat from record to record.
bool repeats(Word key) {
    return key == Word::frames || key == Word::forward_frames || key == Word::pool_id || key == Word::segment_pool_id;
}

bool means_integer(Word key) {
    switch (key) {
        case Word::addr:
        case Word::device_free:
        case Word::size:
        case Word::stream:
        case Word::time_us:
        case Word::device:
        case Word::address:
        case Word::total_size:
        case Word::requested_size:
        case Word::real_size:
        case Word::line: return true;
        default: return false;
    }
}

// Containers by content: equal ones get one number.
class SharedContainers {
public:
    // The number of the container that holds `items`; `make` gives it one when it is new.
    template <class Make>
    std::uint32_t number(std::span<const Value> items, Make&& make) {
        const std::uint32_t known =
            contents_.intern_exact({reinterpret_cast<const char*>(items.data()), items.size_bytes()});
        if (known == numbers_.size()) numbers_.push_back(make());
        return numbers_[known];
    }

private:
    InternTable contents_;
    FlatArray<std::uint32_t> numbers_;
};

class JsonReader {
public:
    JsonReader(Input& input, Snapshot& snapshot)
        : input_(input), lexer_(input), snapshot_(snapshot), values_(snapshot.records.values), sink_(snapshot.records) {
    }

    void read() {
        Value document;
        try {
            lexer_.literal(kByteOrderMark);
            document = read_document();
            if (lexer_.peek() != JsonLexer::kEnd) damaged("something follows the snapshot");
        } catch (const Malformed& problem) {
            throw Error(
                ErrorCode::input, fmt::format("{}: {}: {}", input_.name(), position(), problem.what), problem.hint);
        } catch (const std::length_error& problem) {
            throw Error(ErrorCode::input, fmt::format("{}: {}: {}", input_.name(), position(), problem.what()),
                "the file is damaged or no trace");
        }
        sink_.finish(document, snapshot_, input_.name());
    }

private:
    // A list or dict that is not complete. Its items (of a dict: keys and values in turn) are the stack's from `first`
    // on.
    struct Open {
        bool is_dict;
        bool shared = false;       // its number is that of its content
        bool ignored = false;      // has no items: nothing reads them
        bool maybe_twice = false;  // a key may have come twice
        Word key = kNoWord;        // the last one
        std::uint32_t first = 0;
        std::uint32_t number = kNoNumber;  // of a list: once some of its items are handed on
        std::uint64_t keys = 0;            // bit (string's number) mod 64 of each key
    };
    static constexpr std::uint32_t kNoNumber = 0xffffffffu;

    std::string position() const { return fmt::format("offset {}", lexer_.offset()); }
    [[noreturn]] static void damaged(std::string what, const char* hint = "the file is damaged or no snapshot") {
        throw Malformed{std::move(what), hint};
    }

    Value read_document() {
        for (;;) {
            std::optional<Value> value = begin_value();
            if (!value) continue;
            // It may complete what it is in, and that the next.
            do {
                if (open_.empty()) return *value;
                add(*value);
                value = next_item() ? std::nullopt : std::optional(close());
            } while (value);
        }
    }

    // A whole value, or nothing where a list or a dict with something in it begins.
    std::optional<Value> begin_value() {
        switch (const int first = lexer_.peek()) {
            case '{':
            case '[': {
                lexer_.take();
                open(first == '{');
                const int next = lexer_.peek();
                if (next == '}' || next == ']') {
                    if (next != closing()) lexer_.unexpected(first == '{' ? "a key" : "a value");
                    lexer_.take();
                    return close();
                }
                if (first == '{') read_key();
                return std::nullopt;
            }
            case '"': return string();
            case '-':
            case '0':
            case '1':
            case '2':
            case '3':
            case '4':
            case '5':
            case '6':
            case '7':
            case '8':
            case '9': return number();
            default: break;
        }
        if (lexer_.literal("null")) return Value::of(ValueKind::none);
        if (lexer_.literal("true")) return Value::of(ValueKind::boolean, 1);
        if (lexer_.literal("false")) return Value::of(ValueKind::boolean, 0);
        lexer_.unexpected("a value");
    }

    void open(bool is_dict) {
        if (open_.size() == kMaxDepth) damaged(fmt::format("nested more than {} deep", kMaxDepth));
        Open made{.is_dict = is_dict, .first = static_cast<std::uint32_t>(stack_.size())};
        if (!open_.empty()) {
            const Open& outer = open_.back();
            made.shared = outer.shared || repeats(outer.key);
            made.ignored = outer.ignored || (open_.size() == 1 && outer.is_dict && !is_top_level(outer.key));
        }
        open_.push_back(made);
    }

    void read_key() {
        if (lexer_.peek() != '"') lexer_.unexpected("a key");
        const std::string_view text = lexer_.string();
        Open& dict = open_.back();
        if (!dict.ignored) {
            const Value key = values_.string(values_.strings.intern(text));
            const std::uint64_t bit = std::uint64_t{1} << (key.index() & 63);
            dict.maybe_twice |= (dict.keys & bit) != 0;
            dict.keys |= bit;
            dict.key = word_of(key);
            stack_.push_back(key);
        }
        if (lexer_.peek() != ':') lexer_.unexpected("a colon");
        lexer_.take();
    }

    // Takes the comma before the next item of what is open, or the bracket that ends it; true for the comma.
    bool next_item() {
        const int next = lexer_.peek();
        if (next != ',' && next != closing())
            lexer_.unexpected(open_.back().is_dict ? "a comma or '}'" : "a comma or ']'");
        lexer_.take();
        if (next == ',' && open_.back().is_dict) read_key();
        return next == ',';
    }
    int closing() const { return open_.back().is_dict ? '}' : ']'; }

    void add(Value value) {
        Open& container = open_.back();
        if (container.ignored) return;
        if (stack_.size() >= kMaxContainers) damaged("more values than any snapshot has");
        stack_.push_back(value);
        if (!container.is_dict && !container.shared && stack_.size() - container.first == kBatch) hand_on(container);
    }

    // Items of a list, as many as there are.
    void hand_on(Open& list) {
        if (list.number == kNoNumber) list.number = new_number(lists_);
        if (stack_.size() > list.first) sink_.append(list.number, items_of(list));
        stack_.shrink(list.first);
    }

    Value close() {
        Open done = open_.back();
        open_.pop_back();
        if (done.ignored) return Value::of(ValueKind::none);
        const std::span<const Value> items = items_of(done);
        if (done.maybe_twice) refuse_twice(items);
        Value made;
        if (done.is_dict) {
            const auto fold = [&] {
                const std::uint32_t dict = new_number(dicts_);
                if (!items.empty()) sink_.set_items(dict, items);
                return dict;
            };
            made = Value::of(ValueKind::dict, done.shared ? shared_dicts_.number(items, fold) : fold());
        } else {
            const auto fold = [&] {
                hand_on(done);
                return done.number;
            };
            made = Value::of(ValueKind::list, done.shared ? shared_lists_.number(items, fold) : fold());
        }
        stack_.shrink(done.first);
        return made;
    }

    std::span<const Value> items_of(const Open& container) const {
        return {stack_.data() + container.first, stack_.size() - container.first};
    }

    // Python keeps the last of two equal keys, other programs the first: no way to tell which was meant.
    void refuse_twice(std::span<const Value> items) const {
        std::vector<std::uint32_t> keys;
        for (std::size_t i = 0; i < items.size(); i += 2) keys.push_back(items[i].index());
        std::sort(keys.begin(), keys.end());
        const auto twice = std::adjacent_find(keys.begin(), keys.end());
        if (twice != keys.end())
            damaged(fmt::format("the key '{}' comes twice in one object", snapshot_.records.string(*twice)), kEdited);
    }

    static std::uint32_t new_number(std::uint32_t& count) {
        if (count == kMaxContainers) damaged("more lists or dicts than any snapshot has");
        return count++;
    }

    // Some converters write what JavaScript could not represent as strings: "0x7f12a0000000", "139710991171584".
    Value string() {
        const std::string_view text = lexer_.string();
        if (is_ignored()) return Value::of(ValueKind::none);
        if (means_integer(key()))
            if (const std::optional<std::int64_t> number = parse_number<std::int64_t>(text))
                return values_.integer(*number);
        return values_.string(values_.strings.intern(text));
    }

    // Others know no integers: 512.0.
    Value number() {
        const std::uint64_t at = lexer_.offset();
        const Value value = lexer_.number(values_);
        if (!value.is(ValueKind::real)) return value;
        const double real = values_.reals[value.index()];
        if (is_ignored()) {
            values_.reals.shrink(value.index());
            return value;
        }
        constexpr double kExact = 9007199254740992;  // up to 2^53 every integer is a float
        if (!means_integer(key()) || std::trunc(real) != real || std::abs(real) > kExact) return value;
        snapshot_.diagnostics.count("integer written as a float", fmt::format("offset {}", at));
        values_.reals.shrink(value.index());
        return values_.integer(static_cast<std::int64_t>(real));
    }

    // Of the value that is read.
    Word key() const { return open_.empty() ? kNoWord : open_.back().key; }
    bool is_ignored() const { return !open_.empty() && open_.back().ignored; }

    Input& input_;
    JsonLexer lexer_;
    Snapshot& snapshot_;
    PickleValues& values_;
    SnapshotSink sink_;
    std::vector<Open> open_;
    FlatArray<Value> stack_;
    SharedContainers shared_dicts_, shared_lists_;
    std::uint32_t dicts_ = 0, lists_ = 0;
};

Snapshot read_json(Input& input) {
    Snapshot snapshot;
    JsonReader(input, snapshot).read();
    return snapshot;
}

// A dict with one of the snapshot's own keys, or a list of dicts with one that only segments have.
bool detect(std::string_view head) {
    if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
    const std::size_t begin = head.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos || (head[begin] != '{' && head[begin] != '[')) return false;
    const std::size_t depth_of_keys = head[begin] == '{' ? 1 : 2;
    std::size_t depth = 0, string = 0;
    bool in_string = false;
    for (std::size_t at = begin; at < head.size(); ++at) {
        const char letter = head[at];
        if (in_string) {
            if (letter == '\\') ++at;
            if (letter != '"') continue;
            in_string = false;
            if (depth != depth_of_keys) continue;
            const std::size_t behind = head.find_first_not_of(" \t\r\n", at + 1);
            if (behind == std::string_view::npos || head[behind] != ':') continue;
            const std::string_view key = head.substr(string, at - string);
            for (const std::string_view known :
                {"segments", "device_traces", "allocator_settings", "external_annotations"})
                if (depth_of_keys == 1 && key == known) return true;
            for (const std::string_view known :
                {"total_size", "active_size", "allocated_size", "segment_type", "segment_pool_id"})
                if (depth_of_keys == 2 && key == known) return true;
        } else if (letter == '"') {
            in_string = true;
            string = at + 1;
        } else if (letter == '{' || letter == '[') {
            ++depth;
        } else if ((letter == '}' || letter == ']') && --depth == 0) {
            break;
        }
    }
    return false;
}

Recording read(Input& input) { return make_recording(read_json(input), input.name()); }

}  // namespace

FormatInfo pytorch_json_format() {
    return {"pytorch-json", "memory snapshot of PyTorch that json.dump wrote", detect, read};
}

}  // namespace fragsim
