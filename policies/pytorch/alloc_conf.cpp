// The grammar of PYTORCH_CUDA_ALLOC_CONF: key:value[,key:value]*, with numbers read by their prefix and white space
// dropped anywhere, as PyTorch does. Source: spec/pytorch-caching-allocator.md, section 13.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "lib/core/closest.hpp"
#include "lib/core/error.hpp"
#include "policies/pytorch/native_config.hpp"

namespace fragsim::pytorch {
namespace {

struct Token {
    std::string text;
    std::size_t position;  // of its first character, from 0
};

std::vector<Token> tokenize(std::string_view text) {
    std::vector<Token> tokens;
    bool in_word = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (std::isspace(static_cast<unsigned char>(c))) continue;
        const bool single = c == ',' || c == ':' || c == '[' || c == ']';
        if (in_word && !single)
            tokens.back().text += c;
        else
            tokens.push_back({std::string(1, c), i});
        in_word = !single;
    }
    return tokens;
}

// One key: which versions know it, and what its value does.
struct Key {
    std::string_view name;
    TorchVersion since;
    void (*set)(class Parser&, const Token& value);
    TorchVersion until = {99, 0};
};

class Parser {
public:
    Parser(std::string_view text, TorchVersion version) : text_(text), tokens_(tokenize(text)) {
        conf_.config.version = version;
    }

    AllocConf parse();

    NativeConfig& config() { return conf_.config; }

    [[noreturn]] void refuse(const std::string& what, std::size_t position, std::string hint) const {
        throw Error(ErrorCode::usage, fmt::format("alloc conf '{}': character {}: {}", text_, position + 1, what),
            std::move(hint));
    }

    // A count of MiB, at least `least`, in bytes. "40MB" is 40; "-1" wraps around and becomes no limit.
    Bytes megabytes(const Token& value, Bytes least) {
        const std::uint64_t count = integer(value);
        if (count < static_cast<std::uint64_t>(least))
            refuse(fmt::format("{} is too small", value.text), value.position,
                fmt::format("the smallest value is {}", least));
        return count >= static_cast<std::uint64_t>(kUnlimited / kMiB) ? kUnlimited : static_cast<Bytes>(count) * kMiB;
    }

    std::uint64_t integer(const Token& value) {
        char* end = nullptr;
        errno = 0;
        const std::uint64_t number = std::strtoull(value.text.c_str(), &end, 10);
        read_to(end, value);
        // Before 2.9 numbers were ints.
        const bool too_large = config().version < TorchVersion{2, 9} &&
                               static_cast<std::int64_t>(number) != static_cast<std::int32_t>(number);
        if (errno == ERANGE || too_large)
            refuse(fmt::format("{} is too large", value.text), value.position, "leave the key out for no limit");
        return number;
    }

    double fraction(const Token& value) {
        char* end = nullptr;
        const double number = std::strtod(value.text.c_str(), &end);
        read_to(end, value);
        return number;
    }

    bool boolean(const Token& value) {
        if (value.text != "True" && value.text != "False")
            refuse(fmt::format("'{}' is not True or False", value.text), value.position,
                "write True or False, in this spelling");
        return value.text == "True";
    }

    void roundup(const Token& value);
    void skip_list(const Token& value);

private:
    const Token& take(const char* wanted) {
        if (next_ == tokens_.size())
            refuse(fmt::format("{} is missing", wanted), text_.size(), "write key:value,key:value");
        return tokens_[next_++];
    }
    void separator(const char* wanted) {
        const Token& token = take(wanted);
        if (token.text == wanted) return;
        if (config().version < TorchVersion{2, 9})
            refuse(fmt::format("'{}' where '{}' belongs", token.text, wanted), token.position,
                "write key:value,key:value");
        conf_.warnings.push_back(
            fmt::format("character {}: '{}' is taken for '{}'", token.position + 1, token.text, wanted));
    }
    void read_to(const char* end, const Token& value) {
        if (end == value.text.c_str())
            refuse(fmt::format("'{}' is not a number", value.text), value.position, "write a number");
        if (*end != '\0')
            conf_.warnings.push_back(fmt::format("character {}: '{}' is read as {}", value.position + 1, value.text,
                value.text.substr(0, static_cast<std::size_t>(end - value.text.c_str()))));
    }
    void divisions(const Token& value, std::size_t first, std::size_t last, bool zero_allowed) {
        const std::uint64_t count = integer(value);
        if (!std::has_single_bit(count) && !(zero_allowed && count == 0))
            refuse(fmt::format("{} is not a power of two", value.text), value.position, "divisions are powers of two");
        for (std::size_t k = first; k < last; ++k) config().roundup_power2_divisions[k] = count;
    }

    std::string_view text_;
    std::vector<Token> tokens_;
    std::size_t next_ = 0;
    AllocConf conf_;
};

// Settings that act elsewhere: on threads, on pinned host memory, during graph capture, on the address space reserved
// for expandable segments.
void accept(Parser& parser, const Token& value) { parser.skip_list(value); }

const std::vector<Key>& keys() {
    static const std::vector<Key> all{
        {"max_split_size_mb", {2, 0},
            [](Parser& p, const Token& v) {
                p.config().max_split_size = p.megabytes(v, p.config().large_segment_size / kMiB);
            }},
        {"max_non_split_rounding_mb", {2, 6},
            [](Parser& p, const Token& v) {
                p.config().max_non_split_rounding = p.megabytes(v, p.config().large_segment_size / kMiB);
            }},
        {"garbage_collection_threshold", {2, 0},
            [](Parser& p, const Token& v) {
                const double part = p.fraction(v);
                if (!(part > 0 && part < 1))
                    p.refuse(fmt::format("{} is not between 0 and 1", v.text), v.position,
                        "0 and 1 themselves are refused too");
                p.config().garbage_collection_threshold = part;
            }},
        {"roundup_power2_divisions", {2, 0}, [](Parser& p, const Token& v) { p.roundup(v); }},
        {"roundup_bypass_threshold_mb", {2, 0},
            [](Parser& p, const Token& v) { p.config().roundup_bypass_threshold = p.megabytes(v, 0); }, {2, 0}},
        {"expandable_segments", {2, 1},
            [](Parser& p, const Token& v) { p.config().expandable_segments = p.boolean(v); }},
        {"large_segment_size_mb", {2, 11},
            [](Parser& p, const Token& v) { p.megabytes(v, 11); }},  // set ahead of the others
        {"per_process_memory_fraction", {2, 10},
            [](Parser& p, const Token& v) {
                const double part = p.fraction(v);
                if (!(part >= 0 && part <= 1))
                    p.refuse(fmt::format("{} is not from 0 to 1", v.text), v.position,
                        "write a part of the device's memory");
                p.config().per_process_memory_fraction = part;
            }},
        {"throw_on_cudamalloc_oom", {2, 11},
            [](Parser& p, const Token& v) { p.config().throw_on_cudamalloc_oom = p.boolean(v); }},
        {"backend", {2, 0},
            [](Parser& p, const Token& v) {
                if (v.text != "native" && v.text != "cudaMallocAsync")
                    p.refuse(fmt::format("unknown backend '{}'", v.text), v.position, "known: native, cudaMallocAsync");
                p.config().async_backend = v.text == "cudaMallocAsync";
            }},
        {"release_lock_on_cudamalloc", {2, 2}, accept},
        {"release_lock_on_hipmalloc", {2, 2}, accept},
        {"graph_capture_record_stream_reuse", {2, 10}, accept},
        {"pinned_use_cuda_host_register", {2, 2}, accept},
        {"pinned_use_hip_host_register", {2, 2}, accept},
        {"pinned_num_register_threads", {2, 2}, accept},
        {"pinned_use_background_threads", {2, 6}, accept},
        {"pinned_reserve_segment_size_mb", {2, 9}, accept},
        {"pinned_free_catch_all", {2, 13}, accept},
        {"pinned_max_round_threshold_mb", {2, 13}, accept},
        {"pinned_max_cached_size_mb", {2, 13}, accept},
        {"expandable_segments_reserve", {2, 14}, accept},
        {"expandable_segments_reserve_by_class", {2, 14}, accept},
    };
    return all;
}

AllocConf Parser::parse() {
    // The size of large segments bounds other keys, so it is read first wherever it stands.
    for (std::size_t i = 0; i + 2 < tokens_.size(); ++i)
        if (tokens_[i].text == "large_segment_size_mb" && config().version >= TorchVersion{2, 11})
            config().large_segment_size = megabytes(tokens_[i + 2], 11);
    conf_.warnings.clear();  // said again below
    config().max_non_split_rounding = config().large_segment_size;

    while (next_ < tokens_.size()) {
        const Token name = take("a key");
        const auto key = std::find_if(keys().begin(), keys().end(), [&](const Key& k) { return k.name == name.text; });
        if (key == keys().end()) {
            std::vector<std::string_view> names;
            for (const Key& k : keys()) names.push_back(k.name);
            refuse(fmt::format("unknown key '{}'", name.text), name.position, suggestion(name.text, names));
        }
        if (config().version > key->until)
            refuse(fmt::format(
                       "'{}' is unknown to PyTorch {}.{}", name.text, config().version.major, config().version.minor),
                name.position,
                fmt::format("it went with {}.{}: set torch_version", key->until.major, key->until.minor + 1));
        if (config().version < key->since)
            refuse(fmt::format(
                       "'{}' is unknown to PyTorch {}.{}", name.text, config().version.major, config().version.minor),
                name.position,
                fmt::format("it came with {}.{}: set torch_version", key->since.major, key->since.minor));
        separator(":");
        const std::size_t first = next_;
        const Token value = take("a value");
        key->set(*this, value);

        std::string written;
        for (std::size_t i = first; i < next_; ++i) written += tokens_[i].text;
        std::erase_if(conf_.values, [&](const auto& earlier) { return earlier.first == name.text; });
        conf_.values.emplace_back(name.text, written);
        if (next_ < tokens_.size()) separator(",");
    }
    return std::move(conf_);
}

void Parser::skip_list(const Token& value) {
    for (bool open = value.text == "["; open;) open = take("']'").text != "]";
}

// One number for every size, or [boundary:number,...,>:number] with boundaries in MiB. A number governs sizes from its
// boundary to twice that; the first one also everything below, `>` everything after the last boundary.
void Parser::roundup(const Token& value) {
    auto& table = config().roundup_power2_divisions;
    table.fill(0);
    if (value.text != "[") {
        divisions(value, 0, table.size(), false);
        return;
    }
    const bool zero_allowed = config().version > TorchVersion{2, 0};
    std::size_t filled = 0;  // entries up to here have been spoken for
    for (bool first = true;; first = false) {
        const Token boundary = take("a boundary");
        separator(":");
        const Token count = take("a number of divisions");
        if (boundary.text == ">") {
            // Before 2.9 it overwrote the last boundary's own interval too.
            const bool overwrites = config().version < TorchVersion{2, 9} && filled > 0;
            divisions(count, overwrites ? filled - 1 : filled, table.size(), zero_allowed);
        } else {
            const std::uint64_t mib = integer(boundary);
            if (!std::has_single_bit(mib))
                refuse(fmt::format("{} is not a power of two", boundary.text), boundary.position,
                    "boundaries are powers of two, in MiB");
            const auto entry = std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(mib)), table.size() - 1);
            divisions(count, first ? 0 : entry, entry + 1, zero_allowed);
            filled = entry + 1;
        }
        const Token& next = take("']'");
        if (next.text == "]") return;
        if (next.text != ",")
            refuse(fmt::format("'{}' where ',' or ']' belongs", next.text), next.position, "write [256:1,512:2,>:4]");
    }
}

}  // namespace

AllocConf parse_alloc_conf(std::string_view text, TorchVersion version) { return Parser(text, version).parse(); }

}  // namespace fragsim::pytorch
