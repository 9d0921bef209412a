#include "lib/report/setting_words.hpp"

#include <fmt/format.h>

#include <cctype>

#include "lib/core/error.hpp"
#include "lib/core/sizes.hpp"
#include "lib/report/format.hpp"

namespace fragsim {

std::string setting_label(const std::string& alloc_conf) {
    return alloc_conf.empty() ? "PyTorch's default" : alloc_conf;
}

std::string setting_label(const Setting& setting) {
    if (setting.own) return setting.own->name;
    return setting.alloc_conf ? setting_label(*setting.alloc_conf) : setting.spec.label();
}

std::string setting_line(const std::string& alloc_conf, const TorchProgram& program) {
    if (!alloc_conf.empty()) return fmt::format("export {}={}", alloc_conf_variable(program), alloc_conf);
    std::string line = "unset";
    for (const std::string_view name : alloc_conf_variables(program)) line += fmt::format(" {}", name);
    return line;
}

std::vector<OwnSetting::Line> setting_lines(const Setting& setting, const TorchProgram& program) {
    if (setting.own) return setting.own->lines;
    FRAGSIM_ASSERT(setting.alloc_conf);
    return {{"PyTorch", setting_line(*setting.alloc_conf, program)}};
}

std::vector<std::string> setting_conditions(
    const std::string& alloc_conf, const std::string& before, const TorchProgram& program) {
    std::vector<std::string> conditions;
    const auto names = alloc_conf_variables(program);
    if (!alloc_conf.empty() && !before.empty() && names.size() > 1)
        conditions.push_back(fmt::format("Unset {} if what is in force is there: it is read first.", names.back()));
    if (alloc_conf.find("garbage_collection_threshold") != std::string::npos)
        conditions.emplace_back(
            "garbage_collection_threshold works against a memory limit only "
            "(torch.cuda.set_per_process_memory_fraction).");
    // Source: c10/cuda/CUDAAllocatorConfig.h up to 2.11; pytorch/pytorch pull request 177974 enables them for ROCm 7.
    if (program.hip && alloc_conf.find("expandable_segments:True") != std::string::npos)
        conditions.emplace_back(
            "PyTorch for HIP before 2.12, or before ROCm 7, warns that it does not support expandable segments and goes "
            "on without them.");
    return conditions;
}

std::string fraction_line(std::optional<Bytes> limit) {
    const std::string call = "torch.cuda.set_per_process_memory_fraction";
    return limit ? fmt::format("{}({} / torch.cuda.get_device_properties(0).total_memory)", call, *limit) : call + "(...)";
}

std::string supposing(const std::string& sentence, const TorchProgram& program) {
    if (!program.assumed) return sentence;
    std::string rest = sentence;
    rest.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(rest.front())));
    return "If this is PyTorch's program, " + rest;
}

std::string start_words(Start start) {
    switch (start) {
        case Start::empty: return "";
        case Start::recorded:
            return "starts in mid-run: with the memory that the recording begins with, made under this setting";
        case Start::live:
            return "starts in mid-run: from what was live then, so that no setting is given a cache it would never "
                   "have had";
    }
    return "";
}

BoundWords bound_words(const Limits& limits) {
    if (limits.memory_limit) return {"memory limit", "smallest limit", "within this memory limit"};
    return {"card", "smallest card", "at this capacity"};
}

std::string outcome_words(const Trial& trial) {
    return trial.may_survive() ? fmt::format("may fit, {} OOM", format_count(trial.ooms)) : outcome_words(trial.ooms);
}

std::string outcome_words(std::int64_t ooms) { return ooms == 0 ? "fits" : format_count(ooms) + " OOM"; }

}  // namespace fragsim
