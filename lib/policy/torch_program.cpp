#include "lib/policy/torch_program.hpp"

#include <charconv>
#include <utility>

namespace fragsim {
namespace {

constexpr std::pair kRenamedIn{2, 9};

// Words that begin with no version are those of a newer one than any here.
bool before_the_renaming(std::string_view version) {
    std::pair number{0, 0};
    const char* const end = version.data() + version.size();
    const auto major = std::from_chars(version.data(), end, number.first);
    if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return false;
    if (std::from_chars(major.ptr + 1, end, number.second).ec != std::errc()) return false;
    return number < kRenamedIn;
}

}  // namespace

std::vector<std::string_view> alloc_conf_variables(const TorchProgram& program) {
    const bool old = before_the_renaming(program.version);
    std::vector<std::string_view> names;
    if (program.hip) names.emplace_back("PYTORCH_HIP_ALLOC_CONF");
    if (!old) names.emplace_back("PYTORCH_ALLOC_CONF");
    names.emplace_back("PYTORCH_CUDA_ALLOC_CONF");
    return names;
}

std::string_view alloc_conf_variable(const TorchProgram& program) { return alloc_conf_variables(program).front(); }

}  // namespace fragsim
