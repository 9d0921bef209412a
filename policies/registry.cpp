#include "policies/registry.hpp"

#include <algorithm>

#include "lib/core/error.hpp"
#include "policies/pytorch/native_config.hpp"

namespace fragsim {

#define FRAGSIM_POLICY(name) PolicyInfo name##_policy();
#include "policies/policies.def"
#undef FRAGSIM_POLICY

const std::vector<PolicyInfo>& policies() {
    static const std::vector<PolicyInfo> all{
#define FRAGSIM_POLICY(name) name##_policy(),
#include "policies/policies.def"
#undef FRAGSIM_POLICY
    };
    return all;
}

PolicySpec policy_from_alloc_conf(
    std::string_view text, std::vector<std::string>& warnings, std::string_view torch_version) {
    const pytorch::TorchVersion version =
        torch_version.empty() ? pytorch::TorchVersion{} : pytorch::parse_torch_version(torch_version);
    pytorch::AllocConf conf = pytorch::parse_alloc_conf(text, version);
    warnings = std::move(conf.warnings);
    std::string_view name = "caching";
    if (conf.config.max_split_size != pytorch::kUnlimited) name = "split-capped";
    if (conf.config.expandable_segments) name = "expandable";
    if (conf.config.async_backend) name = "torch-async";

    const auto info =
        std::find_if(policies().begin(), policies().end(), [&](const PolicyInfo& p) { return p.name == name; });
    if (info == policies().end())
        throw Error(ErrorCode::usage,
            "alloc conf '" + std::string(text) + "' needs the policy '" + std::string(name) + "', which is not there",
            "fragsim list policies shows what is");
    PolicySpec spec{&*info, {}, {}};
    spec.assume("torch_version", torch_version);
    for (auto& [key, value] : conf.values) {
        const auto known = [&key = key](const PolicyParameter& p) { return p.name == key; };
        if (std::any_of(info->parameters.begin(), info->parameters.end(), known)) spec.given.emplace_back(key, value);
    }
    return spec;
}

std::optional<PolicySpec> try_alloc_conf(std::string_view text, std::string_view torch_version) {
    std::vector<std::string> warnings;
    try {
        return policy_from_alloc_conf(text, warnings, torch_version);
    } catch (const Error& error) {
        if (error.code() != ErrorCode::usage) throw;
        return {};
    }
}

}  // namespace fragsim
