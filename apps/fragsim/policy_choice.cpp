#include <fmt/format.h>

#include "apps/fragsim/cli.hpp"
#include "lib/policy/torch_program.hpp"
#include "policies/registry.hpp"

namespace fragsim {

void PolicyChoice::add_options(CLI::App& command) {
    // Both kinds go into one list, so that the order of the command line is kept.
    command
        .add_option_function<std::string>(
            "-p,--policy", [this](const std::string& text) { asked.push_back(text); },
            "a policy; again for more (fragsim list policies)")
        ->type_name("NAME[:KEY=VALUE,...]")
        ->trigger_on_parse()
        ->group("Policies");
    command
        .add_option_function<std::string>(
            "--alloc-conf", [this](const std::string& text) { asked.push_back("conf=" + text); },
            fmt::format("a policy as {} sets it; again for more", alloc_conf_variable()))
        ->type_name("STRING")
        ->trigger_on_parse()
        ->group("Policies");
}

void PolicyChoice::check() const {
    constexpr const char* kNewest =
        "2.14";  // knows the most keys; which ones the recording's version knows is seen later
    std::vector<std::string> warnings;
    for (const std::string& word : asked) {
        if (word.starts_with("conf="))
            policy_from_alloc_conf(std::string_view(word).substr(5), warnings, kNewest);
        else
            parse_policy_spec(word, policies());
    }
}

std::optional<PolicySpec> policy_of(const Recording& recording) {
    return try_alloc_conf(recording.settings ? recording.settings->alloc_conf : "", recording.torch_version);
}

std::vector<PolicySpec> PolicyChoice::resolve(const Invocation& invocation, const Recording& recording) const {
    std::vector<PolicySpec> specs;
    std::vector<std::string> words = asked;
    if (words.empty()) words.push_back("conf=" + (recording.settings ? recording.settings->alloc_conf : ""));
    for (const std::string& word : words) {
        if (!word.starts_with("conf=")) {
            specs.push_back(parse_policy_spec(word, policies()));
            specs.back().assume("torch_version", recording.torch_version);
            continue;
        }
        std::vector<std::string> warnings;
        specs.push_back(policy_from_alloc_conf(std::string_view(word).substr(5), warnings, recording.torch_version));
        if (!invocation.quiet)
            for (const std::string& warning : warnings) print_diagnostic("note", "alloc conf: " + warning);
    }
    return specs;
}

}  // namespace fragsim
