#include "policies/pytorch/setting_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "policies/pytorch/native_config.hpp"

namespace fragsim::pytorch {
namespace {

constexpr std::string_view kRoundup = "roundup_power2_divisions";

// Whole mebibytes from `low` to `high`, then not set at all, which is as good as infinite.
SettingKey mebibytes(const char* name, Bytes low, Bytes high) {
    SettingKey key{name, "", {}, {}, 0, "large_segment_size_mb", false};
    for (Bytes value = low; value <= high; ++value) {
        key.values.push_back(fmt::format("{}", value));
        key.bytes.push_back(value * kMiB);
    }
    key.unset = key.values.size();
    key.values.emplace_back();
    key.bytes.push_back(kUnlimited);
    return key;
}

// Hundredths; the bytes are the smallest reserved size that is collected, where all traces have the same memory limit.
SettingKey collection_threshold(std::optional<Bytes> memory_limit) {
    SettingKey key{"garbage_collection_threshold", "", {}, {}, 99, "", false};
    for (int hundredths = 1; hundredths < 100; ++hundredths) {
        key.values.push_back(fmt::format("{:.2f}", hundredths / 100.0));
        if (!memory_limit) continue;
        key.bytes.push_back(static_cast<Bytes>(std::stod(key.values.back()) * static_cast<double>(*memory_limit)) + 1);
    }
    key.values.emplace_back();
    if (memory_limit) key.bytes.push_back(kUnlimited);
    return key;
}

}  // namespace

std::vector<SettingKey> setting_keys(
    std::string_view torch_version, bool limited, std::optional<Bytes> memory_limit, Bytes largest) {
    const TorchVersion version = torch_version.empty() ? TorchVersion{} : parse_torch_version(torch_version);
    const Bytes top = round_up(largest, kMiB) / kMiB;
    std::vector<SettingKey> keys{mebibytes("max_split_size_mb", 20, top)};
    if (version >= TorchVersion{2, 6}) {
        // Not set, it is 20 MiB.
        SettingKey key = mebibytes("max_non_split_rounding_mb", 20, top);
        key.values.pop_back(), key.bytes.pop_back();
        if (!key.values.empty()) {
            key.values.front().clear();
            key.unset = 0;
            keys.push_back(std::move(key));
        }
    }
    if (limited) keys.push_back(collection_threshold(memory_limit));
    keys.push_back({std::string(kRoundup), "", {"", "2", "4", "8", "16", "32", "64"}, {}, 0, "", true});
    for (Bytes power = 1; power <= std::min<Bytes>(top, 32768); power *= 2)
        keys.push_back(
            {std::string(kRoundup), fmt::format("{}", power), {"", "1", "2", "4", "8", "16", "32"}, {}, 0, "", true});
    if (version >= TorchVersion{2, 11}) {
        SettingKey key{"large_segment_size_mb", "", {""}, {}, 0, "", true};
        for (int value = 11; value <= 64; ++value)
            if (value != 20) key.values.push_back(fmt::format("{}", value));
        keys.push_back(std::move(key));
    }
    return keys;
}

std::string alloc_conf_of(
    const std::vector<SettingKey>& keys, const std::vector<std::int64_t>& point, bool expandable) {
    std::string conf = expandable ? "expandable_segments:True" : "";
    const auto add = [&](const std::string& text) { conf += (conf.empty() ? "" : ",") + text; };
    std::string everywhere, list;
    bool parted = false;
    for (std::size_t k = 0; k < keys.size(); ++k) {
        const std::string& value = keys[k].values[static_cast<std::size_t>(point[k])];
        if (!keys[k].part.empty()) {
            // What a list does not name is not rounded, and its first boundary governs everything below it, too.
            parted = parted || !value.empty();
            const std::string divisions = !value.empty() ? value : everywhere.empty() ? "1" : everywhere;
            if (list.empty() || divisions != "1") list += (list.empty() ? "" : ",") + keys[k].part + ':' + divisions;
        } else if (keys[k].name == kRoundup) {
            everywhere = value;
        } else if (!value.empty()) {
            add(keys[k].name + ':' + value);
        }
    }
    if (parted)
        add(fmt::format("{}:[{}{}]", kRoundup, list, everywhere.empty() ? "" : ",>:" + everywhere));
    else if (!everywhere.empty())
        add(fmt::format("{}:{}", kRoundup, everywhere));
    return conf;
}

}  // namespace fragsim::pytorch
