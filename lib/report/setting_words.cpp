#include "lib/report/setting_words.hpp"

#include "lib/report/format.hpp"

namespace fragsim {

std::string setting_label(const std::string& alloc_conf) {
    return alloc_conf.empty() ? "PyTorch's default" : alloc_conf;
}

std::string setting_label(const Setting& setting) {
    return setting.alloc_conf ? setting_label(*setting.alloc_conf) : setting.spec.label();
}

std::string setting_line(const std::string& alloc_conf) {
    return alloc_conf.empty() ? "unset PYTORCH_CUDA_ALLOC_CONF" : "export PYTORCH_CUDA_ALLOC_CONF=" + alloc_conf;
}

std::string setting_condition(const std::string& alloc_conf) {
    if (alloc_conf.find("garbage_collection_threshold") == std::string::npos) return "";
    return "garbage_collection_threshold works against a memory limit only "
           "(torch.cuda.set_per_process_memory_fraction).";
}

std::string outcome_words(std::int64_t ooms) { return ooms == 0 ? "fits" : format_count(ooms) + " OOM"; }

}  // namespace fragsim
