#include "policies/pytorch/settings_to_try.hpp"

namespace fragsim::pytorch {

std::vector<std::string> settings_to_try(bool limited, bool private_pools) {
    std::vector<std::string> settings{"", "expandable_segments:True"};
    for (const int mib : kFolklore) settings.push_back("max_split_size_mb:" + std::to_string(mib));
    settings.insert(settings.end(), {"roundup_power2_divisions:8", "roundup_power2_divisions:4",
                                        "expandable_segments:True,roundup_power2_divisions:8"});
    if (limited) {
        settings.insert(settings.end(), {"garbage_collection_threshold:0.8", "garbage_collection_threshold:0.6",
                                            "max_split_size_mb:128,garbage_collection_threshold:0.8"});
    }
    if (!private_pools) settings.emplace_back("backend:cudaMallocAsync");
    return settings;
}

}  // namespace fragsim::pytorch
