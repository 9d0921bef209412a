#include "policies/pytorch/setting_traits.hpp"

#include <algorithm>

#include "policies/pytorch/native_config.hpp"

namespace fragsim::pytorch {

SettingTraits setting_traits(std::string_view alloc_conf, std::string_view torch_version) {
    const TorchVersion version = torch_version.empty() ? TorchVersion{} : parse_torch_version(torch_version);
    const AllocConf conf = parse_alloc_conf(alloc_conf, version);
    SettingTraits traits;
    for (const auto& [key, value] : conf.values)  // a list is [1024:4,>:2]
        traits.entries += std::max(1, static_cast<int>(std::count(value.begin(), value.end(), ':')));
    if (traits.entries > 0) traits.kind = SettingKind::native;
    if (conf.config.expandable_segments) traits.kind = SettingKind::expandable;
    if (conf.config.async_backend) traits.kind = SettingKind::async;
    // A fraction in the string itself is one.
    traits.needs_memory_fraction =
        conf.config.garbage_collection_threshold > 0 && conf.config.per_process_memory_fraction >= 1;
    return traits;
}

}  // namespace fragsim::pytorch
