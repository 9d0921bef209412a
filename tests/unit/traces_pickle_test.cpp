#include <map>
#include <vector>

#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/unit/traces_support.hpp"
#include "traces/pickle.hpp"

using namespace fragsim;
using namespace fragsim::test;
using namespace std::string_literals;

namespace {

// Keeps everything, to print it.
class TreeSink final : public PickleSink {
public:
    explicit TreeSink(PickleValues& values) : values_(values) {}
    void set_items(std::uint32_t dict, std::span<const Value> items) override {
        dicts_[dict].insert(dicts_[dict].end(), items.begin(), items.end());
    }
    void append(std::uint32_t list, std::span<const Value> items) override {
        lists_[list].insert(lists_[list].end(), items.begin(), items.end());
    }
    Value tuple(std::span<const Value> items) override {
        tuples_.emplace_back(items.begin(), items.end());
        return Value::of(ValueKind::tuple, static_cast<std::int64_t>(tuples_.size()) - 1);
    }

    std::string print(Value value, int depth = 0) {
        if (depth > 5) return "...";
        const auto join = [&](const std::vector<Value>& items, char open, char close, bool pairs) {
            std::string out(1, open);
            for (std::size_t i = 0; i < items.size(); ++i) {
                if (i > 0) out += pairs && i % 2 == 1 ? ": " : ", ";
                out += print(items[i], depth + 1);
            }
            return out + close;
        };
        switch (value.kind()) {
            case ValueKind::none: return "None";
            case ValueKind::boolean: return value.payload() != 0 ? "True" : "False";
            case ValueKind::integer: return std::to_string(value.payload());
            case ValueKind::wide: {
                const WideInteger wide = values_.wide[value.index()];
                return wide.overflow ? "huge" : (wide.negative ? "-" : "") + std::to_string(wide.magnitude);
            }
            case ValueKind::real: return fmt::format("{}", values_.reals[value.index()]);
            case ValueKind::string: return "'" + std::string(values_.strings.text(value.index())) + "'";
            case ValueKind::list: return join(lists_[value.index()], '[', ']', false);
            case ValueKind::dict: return join(dicts_[value.index()], '{', '}', true);
            case ValueKind::tuple: return join(tuples_[value.index()], '(', ')', false);
            default: return "other";
        }
    }

private:
    PickleValues& values_;
    std::map<std::uint32_t, std::vector<Value>> dicts_, lists_;
    std::vector<std::vector<Value>> tuples_;
};

std::string load(const std::string& bytes, std::size_t step = ~std::size_t{0}) {
    Input input = input_of(bytes, step);
    PickleValues values;
    TreeSink sink(values);
    const Value value = read_pickle(input, values, sink);
    return sink.print(value);
}
std::string load_error(const std::string& bytes) {
    return error_of([&] { load(bytes); });
}

}  // namespace

TEST_CASE("integers of every opcode read as Python reads them", "[unit][traces][pickle]") {
    CHECK(load("K\xff.") == "255");
    CHECK(load("M\x01\x02.") == "513");
    CHECK(load("J\xfe\xff\xff\xff.") == "-2");
    CHECK(load("\x8a\0."s) == "0");
    CHECK(load("\x8a\x01\xff.") == "-1");
    CHECK(load("\x8a\x02\xff\0."s) == "255");
    CHECK(load("\x8a\x06\0\0\0\0\x11\x7f."s) == "139710991171584");
    CHECK(load("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.") == "9223372036854775807");
    CHECK(load("\x8a\x08\0\0\0\0\0\0\0\x80."s) == "-9223372036854775808");
    CHECK(load("\x8a\x09\0\0\0\0\0\0\0\x80\0."s) == "9223372036854775808");
    CHECK(load("\x8a\x09\0\0\0\0\0\0\0\0\x01."s) == "huge");
    CHECK(load("\x8b\x03\0\0\0\x01\x02\x03."s) == "197121");
    CHECK(load("I42\n.") == "42");
    CHECK(load("I01\n.") == "True");
    CHECK(load("I00\n.") == "False");
    CHECK(load("L-7L\n.") == "-7");
    CHECK(load("L18446744073709551615L\n.") == "18446744073709551615");
    CHECK(load("L99999999999999999999L\n.") == "huge");
}

TEST_CASE("other scalars read as Python reads them", "[unit][traces][pickle]") {
    CHECK(load("G?\xe0\0\0\0\0\0\0."s) == "0.5");
    CHECK(load("F1e3\n.") == "1000");
    CHECK(load("N.") == "None");
    CHECK(load("\x88.") == "True");
    CHECK(load("\x89.") == "False");
    CHECK(load("\x8c\x03"
               "abc.") == "'abc'");
    CHECK(load("X\x09\0\0\0long text."s) == "'long text'");
    CHECK(load("\x8d\x02\0\0\0\0\0\0\0hi."s) == "'hi'");
    CHECK(load("U\x02"
               "ab.") == "'ab'");
    CHECK(load("T\x02\0\0\0ab."s) == "'ab'");
    CHECK(load("S'it\\'s'\n.") == "'it's'");
    CHECK(load("S\"a\\x41\\n\"\n.") == "'aA\n'");
    CHECK(load("V\\u20ac\\u000a\n.") == "'\xe2\x82\xac\n'");
    CHECK(load("C\x02zz.") == "other");
    CHECK(load("B\x02\0\0\0zz."s) == "other");
    CHECK(load("\x8f.") == "other");
}

TEST_CASE("containers nest, in batches and one by one", "[unit][traces][pickle]") {
    CHECK(load("].") == "[]");
    CHECK(load("](K\x01K\x02"
               "eK\x03"
               "a.") == "[1, 2, 3]");
    CHECK(load("}\x94(\x8c\x01"
               "a\x94K\x01\x8c\x01"
               "bK\x02u\x8c\x01"
               "cK\x03s.") == "{'a': 1, 'b': 2, 'c': 3}");
    CHECK(load("(K\x01K\x02l.") == "[1, 2]");
    CHECK(load("(\x8c\x01"
               "aK\x02"
               "d.") == "{'a': 2}");
    CHECK(load("(K\x01K\x02K\x03K\x04t.") == "(1, 2, 3, 4)");
    CHECK(load(").") == "()");
    CHECK(load("K\x01\x85.") == "(1)");
    CHECK(load("K\x01K\x02K\x03\x87.") == "(1, 2, 3)");
    CHECK(load("](]}e.") == "[[], {}]");
}

TEST_CASE("references keep identity and may be numbered in any of four ways", "[unit][traces][pickle]") {
    CHECK(load("](]\x94h\0"
               "e."s) == "[[], []]");
    CHECK(load("](]q\x05h\x05j\x05\0\0\0e."s) == "[[], [], []]");
    CHECK(load("](]r\x05\0\0\0h\x05"
               "e."s) == "[[], []]");
    CHECK(load("(lp0\n(lp1\nag1\na.") == "[[], []]");
    // The list grows after it was referred to; both see it.
    CHECK(load("](]\x94h\0K\x07"
               "ae."s) == "[[7], [7]]");
    CHECK(load("](K\x05\x94h\0"
               "e."s) == "[5, 5]");
    CHECK(load("](\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x94h\0"
               "e."s) == "[9223372036854775807, 9223372036854775807]");
}

TEST_CASE("dicts of the same shape read right when a reference changes between them", "[unit][traces][pickle]") {
    // Three dicts with the key `h 0`; memo entry 0 is "a", then becomes "b".
    const std::string filler(40, '\0');
    const std::string dict = "}(h\0K\x01h\0K\x02u"s;
    CHECK(load("](\x8c\x01"
               "aq\0"s +
               dict + dict +
               "\x8c\x01"
               "bq\0"s +
               dict + "e."s + filler) == "['a', {'a': 1, 'a': 2}, {'a': 1, 'a': 2}, 'b', {'b': 1, 'b': 2}]");
}

TEST_CASE("a dict with more keys than the short way holds, and values of every kind", "[unit][traces][pickle]") {
    std::string bytes = "](\x8c\x01k\x94"s, expected = "['k', {";
    std::string dict = "}(";
    for (int i = 0; i < 40; ++i) {
        dict += "h\0M"s + little_endian(static_cast<std::uint16_t>(1000 + i));
        expected += (i > 0 ? ", 'k': " : "'k': ") + std::to_string(1000 + i);
    }
    CHECK(load(bytes + dict + "ue.") == expected + "}]");
    const std::string mixed =
        "}(h\0\x8c\x02hi\x94h\0N"
        "h\0\x88h\0G?\xe0\0\0\0\0\0\0h\0]h\0\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fh\0}(uh\0h\x01u"s;
    CHECK(load("](\x8c\x01k\x94"s + mixed + "e." + std::string(40, '\0')) ==
          "['k', {'k': 'hi', 'k': None, 'k': True, 'k': 0.5, 'k': [], 'k': 9223372036854775807, 'k': {}, 'k': 'hi'}]");
}

TEST_CASE("the size of the pieces that the input gives does not matter", "[unit][traces][pickle]") {
    const std::string text(1000, 'x');
    const std::string bytes = "\x80\x04](X\xe8\x03\0\0"s + text +
                              "\x94h\0S'abc'\n\x8b\x03\0\0\0\x01\x02\x03"
                              "B\xe8\x03\0\0"s +
                              text + "}(h\0K\x01ue."s;
    const std::string whole = load(bytes);
    for (const std::size_t step : {1u, 2u, 3u, 7u, 100u}) CHECK(load(bytes, step) == whole);
}

TEST_CASE("whatever would run code is refused by name", "[unit][traces][pickle]") {
    CHECK(contains(load_error("cos\nsystem\n."), "run: offset 0: opcode GLOBAL (os.system) would run code"));
    CHECK(contains(load_error("\x8c\x02os\x8c\x06system\x93."), "STACK_GLOBAL (os.system)"));
    CHECK(contains(load_error("(ios\nsystem\n."), "INST (os.system)"));
    for (const auto& [bytes, name] : std::map<std::string, std::string>{{")R", "REDUCE"}, {"]]b", "BUILD"},
             {"(]o", "OBJ"}, {"Px\n", "PERSID"}, {"]Q", "BINPERSID"}, {"]]\x81", "NEWOBJ"}, {"]]]\x92", "NEWOBJ_EX"},
             {"\x82\x01", "EXT1"}, {"\x83\x01\x01", "EXT2"}, {"\x84\x01\x01\x01\x01", "EXT4"}, {"\x97", "NEXT_BUFFER"},
             {"]\x98", "READONLY_BUFFER"}})
        CHECK(contains(load_error(bytes + "."), "opcode " + name + " would run code"));
}

TEST_CASE("a pickle cut anywhere is an error that says so", "[unit][traces][pickle]") {
    const std::string bytes =
        "\x80\x04\x95\x50\0\0\0\0\0\0\0}\x94(\x8c\x04name\x94](K\x01M\x01\x02J\x01\x02\x03\x04\x8a\x03\x01\x02\x03G?"
        "\xe0\0\0\0\0\0\0X\x03\0\0\0xyz"
        "\x8b\x03\0\0\0\x01\x02\x03h\x01j\x01\0\0\0q\x07r\x08\0\0\0I12\nVab\neh\x01}(h\x01K\x01h\x01\x8c\x03"
        "abc\x94uu."s;
    REQUIRE_NOTHROW(load(bytes));
    for (std::size_t length = 1; length < bytes.size(); ++length) {
        INFO("length " << length);
        CHECK(contains(load_error(bytes.substr(0, length)),
            "offset " + std::to_string(length) + ": the pickle ends in the middle"));
    }
}

TEST_CASE("absurd lengths, numbers and depths are errors that cost nothing", "[unit][traces][pickle]") {
    CHECK(contains(load_error("X\xff\xff\xff\xffshort."), "a value of 4294967295 bytes"));
    CHECK(contains(load_error("X\xff\xff\xff\x0fshort."), "ends in the middle"));
    CHECK(contains(load_error("\x8d\xff\xff\xff\xff\xff\xff\xff\xffx."), "a value of 18446744073709551615 bytes"));
    CHECK(contains(load_error("\x8e\xff\xff\xff\xff\xff\xff\xff\xffx."), "ends in the middle"));
    CHECK(contains(load_error("\x8b\xff\xff\xff\xff."), "negative length"));
    CHECK(contains(load_error("]r\xff\xff\xff\xff."), "memo number 4294967295 is out of all proportion"));
    CHECK(contains(load_error("]p99999999999\n."), "memo number 99999999999 is out of all proportion"));
    CHECK(contains(load_error(std::string(2000, '(') + "."), "nested more than"));
    CHECK(contains(load_error("\x80\x06]."), "pickle protocol 6"));
}

TEST_CASE("opcodes that do not fit the stack are errors", "[unit][traces][pickle]") {
    for (const std::string bytes :
        {".", "u", "}u", "e", "a", "]a", "s",
            "}\x8c\x01"
            "as",
            "0", "2", "1", "\x85", "K\x01\x86", "t", "l", "d", "\x94", "q\x01", "h\x01", "g5\n", "](K\x01u", "}(K\x01u",
            "}](K\x01"
            "eu",
            "K\x01(K\x01"
            "e",
            "\xff", "Ix\n", "Fx\n", "S'x\n", "V\\ux\n", "px\n"}) {
        INFO(bytes);
        CHECK(contains(load_error(bytes + "."), "offset"));
    }
}

TEST_CASE("a list that holds itself is read without end of memory or stack", "[unit][traces][pickle]") {
    CHECK(load("]\x94(h\0h\0"
               "e."s)
              .size() < 2000);
    CHECK(load("}\x94\x8c\x01"
               "ah\0s."s)
              .size() < 2000);
}
