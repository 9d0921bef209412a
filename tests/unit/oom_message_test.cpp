// Pasted out-of-memory messages: every file of tests/data/oom_messages begins with lines "# key: value" of what must be
// read from the rest.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "lib/core/sizes.hpp"
#include "lib/report/message.hpp"
#include "lib/study/run.hpp"
#include "policies/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/truth.hpp"
#include "traces/registry.hpp"

namespace {

using namespace fragsim;
using namespace fragsim::test;

struct Pasted {
    std::string name, text;
    std::map<std::string, std::string> expected;
};

std::vector<Pasted> pasted_messages() {
    static const std::set<std::string> kKeys{"verdict", "versions", "requested", "gpu", "allocated", "allowed", "total",
        "unallocated", "in_private_pools", "hip", "messages", "origin", "expandable"};
    std::vector<Pasted> all;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/data/oom_messages")) {
        if (entry.path().extension() != ".txt") continue;
        Pasted pasted{entry.path().filename(), read_file(entry.path()), {}};
        while (pasted.text.starts_with("# ")) {
            const std::size_t colon = pasted.text.find(": "), end = pasted.text.find('\n');
            if (colon > end || !kKeys.contains(pasted.text.substr(2, colon - 2))) break;
            pasted.expected[pasted.text.substr(2, colon - 2)] = pasted.text.substr(colon + 2, end - colon - 2);
            pasted.text.erase(0, end + 1);
        }
        all.push_back(std::move(pasted));
    }
    return all;
}

// What `range` would be printed as lies in it, and it is no wider than the last digit printed.
void check_figure(const std::optional<ByteRange>& range, const std::string& printed) {
    REQUIRE(range.has_value());
    const double value = std::stod(printed);
    const double unit = printed.ends_with("GiB") ? 0x1p30 : printed.ends_with("MiB") ? 0x1p20 : 0x1p10;
    CHECK(static_cast<double>(range->low) <= value * unit);
    CHECK(static_cast<double>(range->high) >= value * unit);
    CHECK(static_cast<double>(range->high - range->low) <= 0.01 * unit);
}

OomMessage read(const std::string& figures) { return read_oom_message("RuntimeError: CUDA out of memory. " + figures); }

}  // namespace

TEST_CASE("every pasted message gets its verdict, whatever is around it", "[unit][message]") {
    const std::vector<Pasted> all = pasted_messages();
    REQUIRE(all.size() >= 50);
    std::set<std::string> verdicts;
    for (const Pasted& pasted : all) {
        INFO(pasted.name);
        const OomMessage message = read_oom_message(pasted.text);
        const MessageVerdict verdict = judge(message);
        INFO(message_text(message, verdict));
        REQUIRE(pasted.expected.contains("verdict"));
        CHECK(name(verdict.cause) == pasted.expected.at("verdict"));
        verdicts.insert(pasted.expected.at("verdict"));
        for (const auto& [key, value] : pasted.expected) {
            INFO(key);
            if (key == "versions") CHECK(message.versions == value);
            if (key == "origin") CHECK(name(message.origin) == value);
            if (key == "gpu") CHECK(message.gpu == std::stoi(value));
            if (key == "messages") CHECK(message.messages == std::stoi(value));
            if (key == "hip") CHECK(message.hip);
            if (key == "expandable") CHECK(message.expandable_in_force);
            if (key == "requested") check_figure(message.requested, value);
            if (key == "allocated") check_figure(message.allocated, value);
            if (key == "allowed") check_figure(message.allowed, value);
            if (key == "total") check_figure(message.total, value);
            if (key == "unallocated") check_figure(message.unallocated, value);
            if (key == "in_private_pools") check_figure(message.in_private_pools, value);
        }
        if (!pasted.expected.contains("expandable")) CHECK_FALSE(message.expandable_in_force);
    }
    CHECK(verdicts.size() == 9);
}

TEST_CASE("a message survives lines broken anywhere and a prefix on each", "[unit][message]") {
    for (const Pasted& pasted : pasted_messages()) {
        if (!pasted.expected.contains("versions")) continue;
        INFO(pasted.name);
        const std::string as_it_was = message_json(read_oom_message(pasted.text), {}, "", {});
        const std::size_t begin = pasted.text.find("Tried to allocate");
        for (std::size_t width : {23u, 60u, 100u}) {
            // Breaks at spaces, as terminals and loggers do.
            std::string broken = "[worker 3] ";
            std::size_t column = 0;
            for (std::size_t i = 0; i < pasted.text.size(); ++i) {
                const bool end = i > begin && column >= width && pasted.text[i] == ' ';
                broken += end ? std::string("\r\n[worker 3] ") : std::string(1, pasted.text[i]);
                column = end ? 0 : column + 1;
            }
            CHECK(message_json(read_oom_message(broken), {}, "", {}) == as_it_was);
        }
    }
}

TEST_CASE(
    "a message cut off anywhere is read without harm and never proves what the whole does not", "[unit][message]") {
    for (const Pasted& pasted : pasted_messages()) {
        const MessageCause whole = judge(read_oom_message(pasted.text)).cause;
        if (whole == MessageCause::not_torch) continue;
        INFO(pasted.name);
        const std::size_t second = pasted.text.find("[rank1]");
        for (std::size_t length = 0; length < std::min(second, pasted.text.size()); ++length) {
            const MessageCause cause = judge(read_oom_message(pasted.text.substr(0, length))).cause;
            const bool weaker = cause == MessageCause::undecided || cause == MessageCause::no_figures ||
                                cause == MessageCause::not_torch;
            INFO(pasted.text.substr(0, length));
            // What names the stronger cause comes last: the limit before the fragments within it.
            const bool limit = cause == MessageCause::limit && whole == MessageCause::fragmentation;
            CHECK((weaker || cause == whole || limit));
        }
    }
}

TEST_CASE("a program reads the names as the code spells them", "[unit][message]") {
    CHECK(name(MessageCause::private_pools) == std::string("private_pools"));
    CHECK(name(MessageCause::no_figures) == std::string("no_figures"));
    CHECK(name(MessageCause::not_torch) == std::string("not_torch"));
    CHECK(name(OomOrigin::torch_cpu) == std::string("torch_cpu"));
    CHECK(name(OomWording::reserved_total) == std::string("reserved_total"));
    CHECK(name(OomWording::by_process) == std::string("by_process"));
    CHECK(name(OomWording::async_pool) == std::string("async_pool"));
}

TEST_CASE("figures are the bytes that would be printed so", "[unit][message]") {
    const OomMessage message = read(
        "Tried to allocate 1.50 GiB (GPU 0; 23.69 GiB total capacity; 21.58 GiB already "
        "allocated; 12 bytes free; 21.93 GiB reserved in total by PyTorch)");
    CHECK(message.free == ByteRange{12, 12});
    CHECK(message.requested == ByteRange{1605244027, 1615981445});  // 1.495 and 1.505 GiB
}

TEST_CASE("a segment's size bounds the tensor's", "[unit][message]") {
    CHECK(tensor_size({2 * kMiB, 2 * kMiB}) == ByteRange{1, kMiB});
    CHECK(tensor_size({20 * kMiB, 20 * kMiB}) == ByteRange{kMiB + 1, 20 * kMiB});
    CHECK(tensor_size({26 * kMiB, 26 * kMiB}) == ByteRange{24 * kMiB + 1, 26 * kMiB});
}

TEST_CASE("expandable segments are not recommended to those who have them", "[unit][message]") {
    const std::string text =
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 760.00 MiB. GPU 0 has a total "
        "capacity of 79.15 GiB of which 210.00 MiB is free. Including non-PyTorch memory, this process "
        "has 78.93 GiB memory in use. Of the allocated memory 76.08 GiB is allocated by PyTorch, and "
        "2.31 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
        "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.";
    const auto said = [](const std::string& pasted) {
        const OomMessage message = read_oom_message(pasted);
        return message_text(message, judge(message));
    };
    CHECK(said(text).find("  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True") != std::string::npos);
    CHECK(said("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n" + text).find("is in force") !=
          std::string::npos);
}

TEST_CASE("the JSON form of a message is one document with every comparison", "[unit][message]") {
    for (const Pasted& pasted : pasted_messages()) {
        INFO(pasted.name);
        const OomMessage message = read_oom_message(pasted.text);
        const auto json = nlohmann::json::parse(message_json(message, judge(message), "1.2.3", {"explain"}));
        CHECK(json["schema"]["name"] == "fragsim.message");
        CHECK(json["verdict"]["cause"] == pasted.expected.at("verdict"));
        CHECK(json["verdict"]["findings"].size() == judge(message).findings.size());
    }
}

TEST_CASE("memory that others hold is not blamed while the card has room", "[unit][message]") {
    const OomMessage message =
        read_oom_message(read_file(source_dir() + "/tests/data/oom_messages/recorded_vit_multires_f70.txt"));
    REQUIRE(message.others.size() == 5);
    for (const MessageFinding& finding : judge(message).findings) {
        INFO(name(finding.cause));
        const bool holds = finding.cause == MessageCause::fragmentation || finding.cause == MessageCause::limit;
        CHECK(finding.proof == (holds ? Proof::yes : Proof::no));
    }
}

TEST_CASE("the verdict on a recorded run's message is what its replay shows", "[unit][message]") {
    // A request that expandable segments would have served was refused for the pieces its memory lay in.
    const auto served_by_expandable = [](const std::string& recording, const char* limit) {
        RunOptions options;
        options.limits.memory_limit = parse_size(limit);
        const Recording read = read_recording(sample(recording));
        const Result result = run_policy(read.traces.front(), parse_policy_spec("expandable", policies()), options);
        REQUIRE_FALSE(result.recorded_ooms.empty());
        return std::all_of(result.recorded_ooms.begin(), result.recorded_ooms.end(),
            [](const RecordedOomAnswer& answer) { return answer.served; });
    };
    const auto verdict = [](const std::string& file) {
        return judge(read_oom_message(read_file(source_dir() + "/tests/data/oom_messages/" + file))).cause;
    };
    CHECK(served_by_expandable("vit_multires.f70", "9.79GiB"));
    CHECK(verdict("recorded_vit_multires_f70.txt") == MessageCause::fragmentation);
    CHECK(served_by_expandable("oom.default", "6.99GiB"));
    CHECK(verdict("recorded_oom_default_step2.txt") == MessageCause::fragmentation);
    CHECK(verdict("recorded_oom_default_step5.txt") == MessageCause::fragmentation);
}

TEST_CASE(
    "a long log is read once, and what follows a message far behind is not taken for its figures", "[unit][message]") {
    const std::string cut =
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; "
        "21.58 GiB already allocated; 1.93 GiB reserved in total by PyTorch\n";
    CHECK_FALSE(read_oom_message(cut + std::string(10'000, '.') + " 5.00 GiB free; ").free.has_value());
    std::string log;
    for (int i = 0; i < 20'000; ++i) log += cut + std::string(400, '.') + "\nout of memory\n";
    CHECK(read_oom_message(log).messages == 20'000);  // seconds if every message were searched for in the whole rest
}
