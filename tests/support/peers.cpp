#include "tests/support/peers.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/core/error.hpp"
#include "tests/support/script.hpp"
#include "tests/support/truth.hpp"
#include "traces/registry.hpp"

namespace fragsim::test {
namespace {

using nlohmann::json;

// "268435456"; "1.1p": times the peak, rounded down to RMM's alignment.
Bytes size_of(const std::string& text, Bytes peak) {
    if (!text.ends_with('p')) return std::stoll(text);
    return static_cast<Bytes>(std::stod(text) * static_cast<double>(peak)) / 256 * 256;
}

// "pool_initial0.5p_maximum1.1p", "arena_arena2p", "binning_initial0_min18_max22"
std::string rmm_policy(const std::string& config, Bytes peak) {
    const std::vector<std::string> words = split(config, '_');
    std::string spec = "rmm-" + words.at(0);
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::size_t digits = words[i].find_first_of("0123456789");
        const std::string word = words[i].substr(0, digits);
        const std::map<std::string, std::string> keys{{"initial", "initial_pool_bytes"},
            {"maximum", "maximum_pool_bytes"}, {"arena", "arena_bytes"}, {"min", "min_size_exponent"},
            {"max", "max_size_exponent"}};
        spec += fmt::format("{}{}={}", i == 1 ? ":" : ",", keys.at(word), size_of(words[i].substr(digits), peak));
    }
    return spec;
}

// "XLA_PYTHON_CLIENT_PREALLOCATE=false,XLA_PYTHON_CLIENT_MEM_FRACTION=.012"
std::string bfc_policy(const std::string& config) {
    std::string grows = "false", fraction = "0.75";  // JAX's defaults
    for (const std::string& variable : split(config, ',')) {
        const std::vector<std::string> parts = split(variable, '=');
        if (parts.at(0) == "XLA_PYTHON_CLIENT_PREALLOCATE") grows = parts.at(1) == "false" ? "true" : "false";
        if (parts.at(0) == "XLA_PYTHON_CLIENT_MEM_FRACTION") fraction = "0" + parts.at(1);
    }
    return fmt::format("bfc:allow_growth={},memory_fraction={}", grows, fraction);
}

Peer read_peer(const json& line) {
    Peer peer{line["kind"], line["trace"], line["config"], {}, line["n_ops"].get<std::uint32_t>(),
        line["failed_ops"].get<std::vector<std::uint32_t>>(), {}, {}, {}, {}};
    if (peer.kind == "rmm") {
        peer.policy = rmm_policy(peer.config, line["peak_live_bytes"].get<Bytes>());
        for (const json& call : line["upstream"])
            peer.upstream.push_back(
                {call[0].get<std::uint32_t>(), call[1].get<std::string>()[0], call[2].get<Bytes>()});
    } else if (peer.kind == "cupy") {
        peer.policy = "cupy-pool";
        if (!line["limit_bytes"].is_null()) peer.policy += fmt::format(":size={}", line["limit_bytes"].get<Bytes>());
        for (const json& total : line["total_bytes"]) peer.total_bytes[total[0].get<std::uint32_t>()] = total[1].get<Bytes>();
    } else {
        peer.policy = bfc_policy(peer.config);
        for (const json& stats : line["stats"]) peer.stats.push_back(stats[1].get<std::array<Bytes, 4>>());
    }
    if (!line.contains("places")) return peer;
    for (const json& place : line["places"])
        if (place.is_null())
            peer.places.emplace_back();
        else if (place.is_array())
            peer.places.push_back(Peer::Place{place[0].get<std::size_t>(), place[1].get<Bytes>()});
        else
            peer.places.push_back(Peer::Place{0, place.get<Bytes>()});
    return peer;
}

Trace read_program(const json& ops) {
    std::string text;
    for (const json& op : ops)
        text += op[0] == "a" ? fmt::format("a {} {}\n", op[1].get<int>(), op[2].get<Bytes>())
                             : fmt::format("f {}\n", op[1].get<int>());
    return script(text);
}

}  // namespace

void for_each_peer(const std::string& path, const std::function<std::optional<std::string>(const std::string&)>& find,
    const std::function<void(const Peer&, const Trace&)>& visit) {
    std::map<std::string, Trace> traces;
    for_each_line(path, [&](const std::string& text) {
        if (const json line = json::parse(text); line["kind"] == "program")
            traces[line["trace"]] = read_program(line["ops"]);
    });
    for_each_line(path, [&](const std::string& text) {
        const json line = json::parse(text);
        if (line["kind"] == "program") return;
        const std::string name = line["trace"];
        if (!traces.contains(name)) {
            const auto file = find(name);
            if (!file) return;
            traces[name] = std::move(read_recording(*file).traces.front());
        }
        visit(read_peer(line), traces[name]);
    });
}

}  // namespace fragsim::test
