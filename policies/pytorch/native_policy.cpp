#include "policies/pytorch/native_policy.hpp"

#include "policies/pytorch/caching_allocator.hpp"
#include "policies/pytorch/native_config.hpp"

namespace fragsim::pytorch {

PolicyInfo native_policy(Parameters fixed) {
    PolicyInfo info;
    info.reference = "PyTorch 2.0 to 2.15, c10/cuda/CUDACachingAllocator.cpp";
    info.parameters = native_parameters();
    info.memory_limit = PolicyInfo::MemoryLimit::reserved;
    const auto read = [fixed = std::move(fixed)](const Parameters& given) {
        Parameters all = fixed;
        all.insert(all.end(), given.begin(), given.end());
        return read_native_parameters(all);
    };
    info.make = [read](const Parameters& given, const PolicyContext& context) -> std::unique_ptr<Policy> {
        return std::make_unique<CachingAllocator>(read(given).config, context);
    };
    info.torch_settings = [read](const Parameters& given) {
        const AllocConf conf = read(given);
        const NativeConfig& config = conf.config;
        TorchSettings settings{"", config.max_split_size == kUnlimited ? -1 : config.max_split_size,
            config.garbage_collection_threshold, config.expandable_segments, config.roundup_power2_divisions};
        for (const auto& [key, value] : conf.values)
            settings.alloc_conf += (settings.alloc_conf.empty() ? "" : ",") + key + ':' + value;
        return settings;
    };
    info.alloc_conf = [settings = info.torch_settings](const Parameters& given) { return settings(given).alloc_conf; };
    info.advise = [read](const Parameters& given, const Limits& limits) {
        AllocConf conf = read(given);
        std::vector<std::string> advice = std::move(conf.warnings);
        for (std::string& text : keys_without_effect(conf.config, limits))
            advice.push_back(std::move(text));
        return advice;
    };
    return info;
}

}  // namespace fragsim::pytorch
