#include "traces/pytorch_version.hpp"

#include <algorithm>

namespace fragsim {

TorchVersionGuess guess_torch_version(const Snapshot& snapshot) {
    const auto has_setting = [&](const char* key) {
        return std::any_of(snapshot.settings.begin(), snapshot.settings.end(),
            [&](const auto& setting) { return setting.first == key; });
    };
    const auto& entries = snapshot.records.entries;
    const bool pools =
        std::any_of(entries.begin(), entries.end(), [](const EntryRecord& entry) { return entry.pool != 0; });
    if (pools) return {"2.13", "2.13 or later"};
    if (has_setting("graph_capture_record_stream_reuse")) return {"2.12", "2.10 to 2.12"};
    if (snapshot.has_settings) return {"2.8", "2.2 to 2.9"};
    return {"2.1", "2.0 or 2.1"};
}

}  // namespace fragsim
