#include "policies/pytorch/native_policy.hpp"

#include "policies/pytorch/caching_allocator.hpp"
#include "policies/pytorch/native_config.hpp"

namespace fragsim::pytorch {

PolicyInfo native_policy() {
    PolicyInfo info;
    info.reference = "PyTorch 2.0 to 2.15, c10/cuda/CUDACachingAllocator.cpp";
    info.parameters = native_parameters();
    info.limits_itself = true;
    info.make = [](const Parameters& given, const PolicyContext& context) -> std::unique_ptr<Policy> {
        return std::make_unique<CachingAllocator>(read_native_parameters(given).config, context);
    };
    info.advise = [](const Parameters& given, std::optional<Bytes> capacity) {
        AllocConf conf = read_native_parameters(given);
        std::vector<std::string> advice = std::move(conf.warnings);
        for (std::string& text : keys_without_effect(conf.config, capacity.has_value())) advice.push_back(std::move(text));
        return advice;
    };
    return info;
}

}  // namespace fragsim::pytorch
